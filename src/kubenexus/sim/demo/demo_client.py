"""What the steps do to the cluster, through an ordinary client of the API server."""

import asyncio
import contextlib
from collections.abc import Callable

from kubenexus.client import kinds
from kubenexus.client.calls import STRATEGIC_PATCH
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, delete, evict, patch
from kubenexus.sim.controllers.owner_refs import RESOURCES
from kubenexus.sim.demo.cluster_state import ClusterState, owned_by
from kubenexus.sim.demo.manifests import Manifest

NAMESPACE = "default"
_OWN_KINDS = (kinds.NAMESPACES, kinds.PODS, kinds.PRIORITY_CLASSES, kinds.SERVICES)
_KINDS = {each.kind: each for each in (*_OWN_KINDS, *RESOURCES.values())}


class ExpectationFailed(Exception):
    """A step did not have the expected outcome: what was expected, and what was there instead."""

    def __init__(self, expected: str, saw: str) -> None:
        super().__init__(f"expected {expected}, saw {saw}")


class DemoClient:
    """`pace` scales the pauses for a human reader; 0: no pauses. `packs`: the scheduler packs batches."""

    def __init__(
        self, client: ApiClient, state: ClusterState, patience: float, pace: float = 0.0, *, packs: bool = True
    ) -> None:
        self._client, self.state, self._patience, self._pace, self.packs = client, state, patience, pace, packs
        self.moved = 0

    async def apply(self, *manifests: Manifest) -> None:
        for each in manifests:
            namespace = each["metadata"].get("namespace", NAMESPACE)
            await self._client.send(create(_KINDS[each["kind"]], each, namespace))

    async def scale(self, kind: ApiResource, name: str, replicas: int) -> None:
        await self._client.send(patch(kind, NAMESPACE, name, {"spec": {"replicas": replicas}}))

    async def cordon(self, node: str) -> None:
        body = {"spec": {"unschedulable": True}}
        await self._client.send(patch(kinds.NODES, "", node, body, content_type=STRATEGIC_PATCH))

    async def drain(self, node: str) -> int:
        """Evicts the pods of a node, as `kubectl drain --ignore-daemonsets` does. Returns how many."""
        leaving = [pod for pod in self.state.on(node) if not owned_by(pod, "DaemonSet")]
        for pod in leaving:
            await self._client.send(evict(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid))
        self.moved += len(leaving)
        return len(leaving)

    async def end(self, app: str) -> float:
        """Deletes all pods of an app. Returns when this began."""
        began = self.state.now()
        for pod in self.state.of(app):
            meta = pod.metadata
            await self._client.send(delete(kinds.PODS, meta.namespace, meta.name, meta.uid, grace_seconds=0))
        return began

    async def until(self, expected: str, saw: Callable[[], str]) -> None:
        """Waits until `saw` returns "". Otherwise `saw` returns what is there instead. Raises ExpectationFailed after
        the timeout."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while saw():
                    await self.state.change()
                return
        if found := saw():
            raise ExpectationFailed(expected, f"{found} after {self._patience:g} s")

    async def pause(self, seconds: float) -> None:
        """Waits, so that a human can follow."""
        if self._pace:
            await asyncio.sleep(seconds * self._pace)


def expect(true: bool, expected: str, saw: str) -> None:
    """Raises ExpectationFailed if the condition does not hold."""
    if not true:
        raise ExpectationFailed(expected, saw)
