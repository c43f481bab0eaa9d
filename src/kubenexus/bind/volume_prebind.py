"""`VolumePreBind`: the PreBind part of VolumeBinding. Writes the chosen volumes, and waits until claims are bound.

A claim that waits for its first consumer gets the annotation that names the node, and its provisioner makes a volume
there. An existing volume that was chosen gets a reference to the claim. The controllers do the rest. If they give up,
or take longer than the timeout, the job is decided again. The ledger drops its volume choices with the assumed pod.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from kubenexus.api.core import Pod
from kubenexus.api.storage import BIND_COMPLETED, SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from kubenexus.bind.job_binding import PodBinding, WriteGuard
from kubenexus.client.calls import Api, ApiError, Call, Uncertain, Unreachable
from kubenexus.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from kubenexus.client.verbs import patch
from kubenexus.state.volumes.pod_volumes import pod_volumes

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
TIMEOUT = 600.0

Claims = Mapping[str, PersistentVolumeClaim]
Volumes = Mapping[str, PersistentVolume]


class _VolumeWait:
    """A pod that waits for its claims. `left`: the claims that are not bound; `problem`: why it waits in vain."""

    __slots__ = ("left", "over", "pod_binding", "problem", "wanted")

    def __init__(self, pod_binding: PodBinding, wanted: Mapping[str, str]) -> None:
        self.pod_binding, self.wanted, self.left, self.problem = pod_binding, wanted, set[str](), ""
        self.over = asyncio.Event()


class VolumePreBind:
    """A `PreBind` plugin. `claims` and `volumes` are the objects in the state of the watch. Their owner calls
    `on_claim_changed` after each change."""

    name = "VolumeBinding"
    awaited = "volumes"

    def __init__(
        self, api: Api, guard: WriteGuard, claims: Claims, volumes: Volumes, timeouts: Mapping[str, float] | None = None
    ) -> None:
        self._api, self._guard, self._claims, self._volumes = api, guard, claims, volumes
        self._timeouts = timeouts or {}  # by the profile
        self._waiting: dict[str, set[_VolumeWait]] = {}  # by claim

    def may_concern(self, pod: Pod) -> bool:
        mounts, namespace = pod_volumes(pod), pod.metadata.namespace
        uses = () if mounts is None else mounts.claims
        return any(not is_bound(self._claims.get(f"{namespace}/{use.claim}")) for use in uses)

    def concerns(self, pod_binding: PodBinding) -> bool:
        return bool(pod_binding.picks)

    async def pre_bind(self, pod_binding: PodBinding) -> str:
        wanted = chosen_volumes(pod_binding)
        for claim, volume in wanted.items():
            call = self._call(pod_binding, claim, volume)
            problem = call if isinstance(call, str) else await self._write(call)
            if problem:
                return problem
        try:
            async with asyncio.timeout(self._timeouts.get(pod_binding.pod.spec.scheduler_name, TIMEOUT)):
                return await self._bound(pod_binding, wanted)
        except TimeoutError:
            return "binding volumes: timed out waiting for the condition"

    def on_claim_changed(self, claim: str) -> None:
        """Checks this claim alone for each pod that waits for it: a thousand pods may share hundreds of claims."""
        waits = self._waiting.get(claim)
        bound = waits is not None and is_bound(self._claims.get(claim))
        for wait in waits or ():
            if bound:
                wait.left.discard(claim)
            else:
                wait.left.add(claim)
                wait.problem = wait.problem or self._given_up(wait.pod_binding, claim, wait.wanted[claim])
            if wait.problem or not wait.left:
                wait.over.set()

    # --- writes ---------------------------------------------------------------------------------------------------

    def _call(self, pod_binding: PodBinding, key: str, volume: str) -> Call | str | None:
        """Returns the call for one claim, None if there is nothing to write, or what is wrong."""
        claim = self._claims.get(key)
        if claim is None:
            return f'binding volumes: persistentvolumeclaim "{key}" not found'
        if not volume:
            return select_node_call(claim, pod_binding.node)
        found = self._volumes.get(volume)
        return (
            f'binding volumes: persistentvolume "{volume}" not found'
            if found is None
            else claim_volume_call(found, claim)
        )

    async def _write(self, call: Call | None) -> str:
        if call is None:
            return ""
        if not self._guard.may_write():
            return "this process does not lead any more"
        try:
            await self._api.send(call, timeout=self._guard.write_timeout)
        except (ApiError, Unreachable, Uncertain) as error:
            # A reference that may have been written does no harm: the next try writes it again, or finds it.
            return f"binding volumes: {error}"
        return ""

    # --- waiting --------------------------------------------------------------------------------------------------

    async def _bound(self, pod_binding: PodBinding, wanted: Mapping[str, str]) -> str:
        wait = _VolumeWait(pod_binding, wanted)
        wait.left.update(key for key in wanted if not is_bound(self._claims.get(key)))
        with self._listening(wait):
            while wait.left and not wait.problem:
                wait.over.clear()
                await wait.over.wait()
        return wait.problem

    @contextlib.contextmanager
    def _listening(self, wait: "_VolumeWait") -> Any:
        for key in wait.wanted:
            self._waiting.setdefault(key, set()).add(wait)
        try:
            yield
        finally:
            for key in wait.wanted:
                self._waiting[key].discard(wait)
                if not self._waiting[key]:
                    del self._waiting[key]

    def _given_up(self, pod_binding: PodBinding, key: str, volume: str) -> str:
        """Why a claim will not be bound, "" if it may be. A provisioner that cannot serve the node removes the
        annotation."""
        claim = self._claims.get(key)
        if claim is None:
            return f'binding volumes: persistentvolumeclaim "{key}" not found'
        if not volume and claim.metadata.annotations.get(SELECTED_NODE) != pod_binding.node:
            return f'binding volumes: provisioning failed for PVC "{claim.metadata.name}"'
        return ""


def chosen_volumes(pod_binding: PodBinding) -> dict[str, str]:
    """Returns the claims to bind, by key, with the chosen volume, "" for a volume that is to be made."""
    mounts, picks = pod_volumes(pod_binding.pod), dict(pod_binding.picks)
    uses = () if mounts is None else mounts.claims
    namespace = pod_binding.pod.metadata.namespace
    return {f"{namespace}/{use.claim}": picks[use.position] for use in uses if use.position in picks}


def is_bound(claim: PersistentVolumeClaim | None) -> bool:
    """Whether the controllers have bound the claim."""
    return claim is not None and bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def select_node_call(claim: PersistentVolumeClaim, node: str) -> Call | None:
    """Returns the patch that has the provisioner make a volume for this node. A changed claim is a Conflict."""
    meta = claim.metadata
    if meta.annotations.get(SELECTED_NODE) == node:
        return None
    body = {"metadata": {"resourceVersion": meta.resource_version, "annotations": {SELECTED_NODE: node}}}
    return patch(PERSISTENT_VOLUME_CLAIMS, meta.namespace, meta.name, body)


def claim_volume_call(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Call | None:
    """Returns the patch that gives a volume to a claim, as kube-scheduler does; the controller completes it. A volume
    that another claim got meanwhile is a Conflict."""
    held, meta = volume.spec.claim_ref, claim.metadata
    if held is not None and held.uid == meta.uid:
        return None
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    marks = {"annotations": {BY_CONTROLLER: "yes"}} if held is None else {}
    body = {
        "metadata": {"resourceVersion": volume.metadata.resource_version, **marks},
        "spec": {"claimRef": reference},
    }
    return patch(PERSISTENT_VOLUMES, "", volume.metadata.name, body)
