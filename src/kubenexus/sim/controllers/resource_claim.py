"""The ResourceClaim controller: makes claims from the templates that pods name, and frees them after their pods.

a pod with a template   a claim that the pod owns, and its name in the pod's status
a user that is gone     is removed from `reservedFor`; with the last one the devices and the finalizer go, too
a pod that has ended    its own claims are deleted (after a pod that is deleted, garbage collection does that)
"""

from collections.abc import Callable
from typing import Any

import msgspec

from kubenexus.api.devices.resource_claim import FINALIZER
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import Call
from kubenexus.sim.apiserver.http_types import Response
from kubenexus.sim.apiserver.store import DELETED, Store, StoreChange

Item = dict[str, Any]
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_PODS, _CLAIMS, _TEMPLATES = "pods", "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
_ENDED = ("Succeeded", "Failed")
_decode = msgspec.json.Decoder().decode


class ResourceClaimController:
    """Listens to the store until `close`. `wake` is called when there is something to do, and `run` does it."""

    def __init__(self, store: Store, send: Callable[[Call], Response], wake: Callable[[], None]) -> None:
        self._store, self._send, self._wake = store, send, wake
        self._turns: dict[tuple[str, str], None] = {}
        self._users: dict[str, set[str]] = {}  # claims that a pod uses or owns, by the pod's UID
        self._waiting: dict[str, set[str]] = {}  # pods that wait for a template, by its key
        listeners = {_PODS: self._pod, _CLAIMS: self._claim, _TEMPLATES: self._template}
        self._leave = [store.listen(resource, listener) for resource, listener in listeners.items()]
        for resource, listener in listeners.items():
            collection = store.collection(resource)
            for key in collection.keys():  # noqa: SIM118 - not a dict
                listener(StoreChange(0, "ADDED", key, collection.objects[key], None))

    def close(self) -> None:
        for leave in self._leave:
            leave()
        self._turns.clear()

    @property
    def idle(self) -> bool:
        return not self._turns

    def run(self, most: int) -> None:
        """Looks at up to `most` pods and claims."""
        for _ in range(min(most, len(self._turns))):
            resource, key = turn = next(iter(self._turns))
            del self._turns[turn]
            item = self._item(resource, key)
            if item is not None:
                (self._sync_pod if resource == _PODS else self._sync_claim)(item)

    # ---- changes of the store --------------------------------------------------------------------------------------

    def _pod(self, change: StoreChange) -> None:
        # Most pods have no claims: a search in the bytes costs a tenth of decoding them.
        if b'"resourceClaims"' not in change.data:
            return
        pod = _decode(change.data)
        if change.type == DELETED or pod.get("status", {}).get("phase") in _ENDED:
            for key in sorted(self._users.get(pod["metadata"]["uid"], ())):
                self._queue(_CLAIMS, key)
            if change.type == DELETED:
                self._users.pop(pod["metadata"]["uid"], None)
        else:
            self._queue(_PODS, change.key)

    def _claim(self, change: StoreChange) -> None:
        if change.type == DELETED:
            return
        claim = _decode(change.data)
        for uid in (_owner(claim), *(each["uid"] for each in _reserved(claim))):
            if uid:
                self._users.setdefault(uid, set()).add(change.key)
        if _reserved(claim) or "deletionTimestamp" in claim["metadata"]:
            self._queue(_CLAIMS, change.key)

    def _template(self, change: StoreChange) -> None:
        if change.type != DELETED:
            for key in sorted(self._waiting.pop(change.key, ())):
                self._queue(_PODS, key)

    def _queue(self, resource: str, key: str) -> None:
        idle = self.idle
        self._turns[resource, key] = None
        if idle:
            self._wake()

    # ---- pods --------------------------------------------------------------------------------------------------------

    def _sync_pod(self, pod: Item) -> None:
        meta = pod["metadata"]
        if "deletionTimestamp" in meta or pod.get("status", {}).get("phase") in _ENDED:
            return
        known = {each["name"]: each for each in pod.get("status", {}).get("resourceClaimStatuses") or ()}
        fresh = dict(known)
        for each in pod["spec"].get("resourceClaims") or ():
            if each.get("resourceClaimTemplateName") and each["name"] not in known:
                name = self._made(pod, each["name"], each["resourceClaimTemplateName"])
                if name:
                    fresh[each["name"]] = {"name": each["name"], "resourceClaimName": name}
        if fresh != known:
            status = {"resourceClaimStatuses": list(fresh.values())}
            self._send(verbs.patch_pod_status(meta["namespace"], meta["name"], meta["uid"], status))

    def _made(self, pod: Item, claim: str, template: str) -> str:
        """Returns the name of the claim for a pod, which is made if it does not exist; "" while that is impossible."""
        meta = pod["metadata"]
        for key in sorted(self._users.get(meta["uid"], ())):
            found = self._item(_CLAIMS, key)
            if found is not None and _owner(found) == meta["uid"] and _pod_claim(found) == claim:
                return str(found["metadata"]["name"])
        place = f"{meta['namespace']}/{template}"
        source = self._item(_TEMPLATES, place)
        if source is None:
            self._waiting.setdefault(place, set()).add(f"{meta['namespace']}/{meta['name']}")
            return ""
        head = source["spec"].get("metadata") or {}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": f"{meta['name']}-{claim}-",
                "labels": head.get("labels", {}),
                "annotations": {**head.get("annotations", {}), POD_CLAIM_NAME: claim},
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            },
            "spec": source["spec"]["spec"],
        }
        answer = self._send(verbs.create(kinds.RESOURCE_CLAIMS, body, meta["namespace"]))
        return str(_decode(answer.body)["metadata"]["name"]) if answer.code < 300 else ""

    # ---- claims ------------------------------------------------------------------------------------------------------

    def _sync_claim(self, claim: Item) -> None:
        meta, users = claim["metadata"], _reserved(claim)
        left = [each for each in users if self._is_used(meta["namespace"], each)]
        if left:
            if len(left) < len(users):
                self._write_status(claim, {**claim["status"], "reservedFor": left})
            return
        ended = bool(users) or "deletionTimestamp" in meta
        if ended and FINALIZER in meta.get("finalizers", ()):
            rest = {key: value for key, value in claim.get("status", {}).items() if key == "devices"}
            written = self._write_status(claim, rest)
            if written is None:
                return
            kept = [each for each in meta["finalizers"] if each != FINALIZER]
            body = {**written, "metadata": {**written["metadata"], "finalizers": kept}}
            self._send(verbs.update(kinds.RESOURCE_CLAIMS, meta["namespace"], meta["name"], body))
        elif users:
            self._write_status(claim, {key: value for key, value in claim["status"].items() if key != "reservedFor"})
        if _owner(claim) and not self._is_alive(meta["namespace"], claim):
            self._send(verbs.delete(kinds.RESOURCE_CLAIMS, meta["namespace"], meta["name"], meta["uid"]))

    def _is_used(self, namespace: str, user: Item) -> bool:
        if user.get("resource") != "pods" or user.get("apiGroup"):
            return True  # of another kind: it is not for us to say
        return self._runs(namespace, user["name"], user["uid"])

    def _is_alive(self, namespace: str, claim: Item) -> bool:
        owner = next(each for each in claim["metadata"]["ownerReferences"] if each.get("controller"))
        return self._runs(namespace, owner["name"], owner["uid"])

    def _runs(self, namespace: str, name: str, uid: str) -> bool:
        pod = self._item(_PODS, f"{namespace}/{name}")
        return pod is not None and pod["metadata"]["uid"] == uid and pod.get("status", {}).get("phase") not in _ENDED

    def _write_status(self, claim: Item, status: Item) -> Item | None:
        meta = claim["metadata"]
        body = {**claim, "status": status}
        call = verbs.update(kinds.RESOURCE_CLAIMS, meta["namespace"], meta["name"], body, part="status")
        answer = self._send(call)
        return _decode(answer.body) if answer.code < 300 else None

    def _item(self, resource: str, key: str) -> Item | None:
        data = self._store.collection(resource).objects.get(key)
        return None if data is None else _decode(data)


def _owner(claim: Item) -> str:
    """Returns the UID of the pod that a claim was made for, or ""."""
    for each in claim["metadata"].get("ownerReferences") or ():
        if each.get("controller") and each.get("kind") == "Pod":
            return str(each["uid"])
    return ""


def _pod_claim(claim: Item) -> str:
    """Returns the name that the pod's spec has for a claim that was made for it."""
    return str(claim["metadata"].get("annotations", {}).get(POD_CLAIM_NAME, ""))


def _reserved(claim: Item) -> list[Item]:
    return list(claim.get("status", {}).get("reservedFor") or ())
