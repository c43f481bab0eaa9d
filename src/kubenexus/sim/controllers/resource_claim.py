"""The ResourceClaim controller: makes claims from the templates that pods name, and frees them after their pods.

a pod with a template   a claim that the pod owns, and its name in the pod's status
a PodGroup with one     the same; pods of the group that list the same claim get the name of the PodGroup's
a user that is gone     is removed from `reservedFor`; with the last one the devices and the finalizer go, too
a pod that has ended    its own claims are deleted (after a pod that is deleted, garbage collection does that)
"""

from collections.abc import Callable
from typing import Any

import msgspec

from kubenexus.api.devices.resource_claim import FINALIZER
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import Call
from kubenexus.client.kinds import ApiResource
from kubenexus.sim.apiserver.http_types import Response
from kubenexus.sim.apiserver.store import DELETED, Store, StoreChange

Item = dict[str, Any]
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_PODS, _CLAIMS, _TEMPLATES = "pods", "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
_GROUP = "scheduling.k8s.io"
_GROUPS = f"podgroups.{_GROUP}"
_MAX_BASE = 57  # characters of a generated name before the random ones
_ENDED = ("Succeeded", "Failed")
_decode = msgspec.json.Decoder().decode


class ResourceClaimController:
    """Listens to the store until `close`. `wake` is called when there is something to do, and `run` does it. `claims`
    is the version of claims that the server has."""

    def __init__(
        self,
        store: Store,
        send: Callable[[Call], Response],
        wake: Callable[[], None],
        claims: ApiResource = kinds.RESOURCE_CLAIMS,
    ) -> None:
        self._store, self._send, self._wake, self._claims = store, send, wake, claims
        self._turns: dict[tuple[str, str], None] = {}
        self._users: dict[str, set[str]] = {}  # claims that a pod or PodGroup uses or owns, by its UID
        # Pods and PodGroups that wait for a template or a PodGroup, by resource and key of what they wait for.
        self._waiting: dict[tuple[str, str], set[tuple[str, str]]] = {}
        listeners = {_PODS: self._pod, _GROUPS: self._group, _CLAIMS: self._claim, _TEMPLATES: self._template}
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
                {_PODS: self._sync_pod, _GROUPS: self._sync_group, _CLAIMS: self._sync_claim}[resource](item)

    # ---- changes of the store --------------------------------------------------------------------------------------

    def _pod(self, change: StoreChange) -> None:
        # Most pods have no claims: a search in the bytes costs a tenth of decoding them.
        if b'"resourceClaims"' not in change.data:
            return
        pod = _decode(change.data)
        if change.type == DELETED or pod.get("status", {}).get("phase") in _ENDED:
            self._user_ended(pod["metadata"]["uid"], gone=change.type == DELETED)
        else:
            self._queue(_PODS, change.key)

    def _group(self, change: StoreChange) -> None:
        group = _decode(change.data)
        if change.type == DELETED:
            self._user_ended(group["metadata"]["uid"], gone=True)
            return
        if b'"resourceClaims"' in change.data:
            self._queue(_GROUPS, change.key)
        self._wake_waiting(_GROUPS, change.key)

    def _user_ended(self, uid: str, *, gone: bool) -> None:
        for key in sorted(self._users.get(uid, ())):
            self._queue(_CLAIMS, key)
        if gone:
            self._users.pop(uid, None)

    def _wake_waiting(self, resource: str, key: str) -> None:
        for waiting in sorted(self._waiting.pop((resource, key), ())):
            self._queue(*waiting)

    def _claim(self, change: StoreChange) -> None:
        if change.type == DELETED:
            return
        claim = _decode(change.data)
        for uid in (_owner(claim)["uid"], *(each["uid"] for each in _reserved(claim))):
            if uid:
                self._users.setdefault(uid, set()).add(change.key)
        if _reserved(claim) or "deletionTimestamp" in claim["metadata"]:
            self._queue(_CLAIMS, change.key)

    def _template(self, change: StoreChange) -> None:
        if change.type != DELETED:
            self._wake_waiting(_TEMPLATES, change.key)

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
                name = self._name_for_pod(pod, each)
                if name:
                    fresh[each["name"]] = {"name": each["name"], "resourceClaimName": name}
        if fresh != known:
            status = {"resourceClaimStatuses": list(fresh.values())}
            self._send(verbs.patch_pod_status(meta["namespace"], meta["name"], meta["uid"], status))

    def _name_for_pod(self, pod: Item, claim: Item) -> str:
        """Returns the name of the claim for a pod: its PodGroup's if that lists the same claim, else the pod's own,
        which is made if it does not exist. "" while there is none."""
        meta, named = pod["metadata"], (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if named:
            place = f"{meta['namespace']}/{named}"
            group = self._item(_GROUPS, place)
            listed = claim in (group["spec"].get("resourceClaims") or ()) if group is not None else False
            name = self._existing(group["metadata"]["uid"], claim["name"]) if group is not None and listed else ""
            if group is None or (listed and not name):
                self._waiting.setdefault((_GROUPS, place), set()).add((_PODS, f"{meta['namespace']}/{meta['name']}"))
                return ""
            if listed:
                return name
        return self._made(_PODS, pod, claim)

    def _existing(self, uid: str, claim: str) -> str:
        """Returns the name of a claim that was made for a pod or PodGroup, or ""."""
        for key in sorted(self._users.get(uid, ())):
            found = self._item(_CLAIMS, key)
            if found is not None and _owner(found)["uid"] == uid and _pod_claim(found) == claim:
                return str(found["metadata"]["name"])
        return ""

    def _made(self, resource: str, item: Item, claim: Item) -> str:
        """Returns the name of the claim for a pod or PodGroup, which is made if it does not exist; "" while that is
        impossible."""
        meta, name = item["metadata"], claim["name"]
        found = self._existing(meta["uid"], name)
        if found:
            return found
        place = f"{meta['namespace']}/{claim['resourceClaimTemplateName']}"
        source = self._item(_TEMPLATES, place)
        if source is None:
            waiting = (resource, f"{meta['namespace']}/{meta['name']}")
            self._waiting.setdefault((_TEMPLATES, place), set()).add(waiting)
            return ""
        head = source["spec"].get("metadata") or {}
        body = {
            "apiVersion": self._claims.api_version,
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": _base_name(meta["name"], name),
                "labels": head.get("labels", {}),
                "annotations": {**head.get("annotations", {}), POD_CLAIM_NAME: name},
                "ownerReferences": [_owner_reference(resource, meta)],
            },
            "spec": source["spec"]["spec"],
        }
        answer = self._send(verbs.create(self._claims, body, meta["namespace"]))
        return str(_decode(answer.body)["metadata"]["name"]) if answer.code < 300 else ""

    # ---- PodGroups ---------------------------------------------------------------------------------------------------

    def _sync_group(self, group: Item) -> None:
        meta = group["metadata"]
        if "deletionTimestamp" in meta:
            return
        known = {each["name"]: each for each in group.get("status", {}).get("resourceClaimStatuses") or ()}
        fresh = dict(known)
        for each in group["spec"].get("resourceClaims") or ():
            if each.get("resourceClaimTemplateName") and each["name"] not in known:
                name = self._made(_GROUPS, group, each)
                if name:
                    fresh[each["name"]] = {"name": each["name"], "resourceClaimName": name}
        if fresh != known:
            body = {"status": {"resourceClaimStatuses": list(fresh.values())}}
            self._send(verbs.patch(kinds.POD_GROUPS, meta["namespace"], meta["name"], body, part="status"))
        self._wake_waiting(_GROUPS, f"{meta['namespace']}/{meta['name']}")

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
            self._send(verbs.update(self._claims, meta["namespace"], meta["name"], body))
        elif users:
            self._write_status(claim, {key: value for key, value in claim["status"].items() if key != "reservedFor"})
        if _owner(claim).get("kind") == "Pod" and not self._is_alive(meta["namespace"], claim):
            self._send(verbs.delete(self._claims, meta["namespace"], meta["name"], meta["uid"]))

    def _is_used(self, namespace: str, user: Item) -> bool:
        kind = user.get("apiGroup", ""), user.get("resource")
        if kind == (_GROUP, "podgroups"):
            group = self._item(_GROUPS, f"{namespace}/{user['name']}")
            return group is not None and group["metadata"]["uid"] == user["uid"]
        if kind != ("", "pods"):
            return True  # of another kind: it is not for us to say
        return self._runs(namespace, user["name"], user["uid"])

    def _is_alive(self, namespace: str, claim: Item) -> bool:
        owner = _owner(claim)
        return self._runs(namespace, owner["name"], owner["uid"])

    def _runs(self, namespace: str, name: str, uid: str) -> bool:
        pod = self._item(_PODS, f"{namespace}/{name}")
        return pod is not None and pod["metadata"]["uid"] == uid and pod.get("status", {}).get("phase") not in _ENDED

    def _write_status(self, claim: Item, status: Item) -> Item | None:
        meta = claim["metadata"]
        body = {**claim, "status": status}
        call = verbs.update(self._claims, meta["namespace"], meta["name"], body, part="status")
        answer = self._send(call)
        return _decode(answer.body) if answer.code < 300 else None

    def _item(self, resource: str, key: str) -> Item | None:
        data = self._store.collection(resource).objects.get(key)
        return None if data is None else _decode(data)


def _owner(claim: Item) -> Item:
    """Returns the reference to the pod or PodGroup that a claim was made for; its `uid` is "" if there is none."""
    for each in claim["metadata"].get("ownerReferences") or ():
        if each.get("controller") and each.get("kind") in ("Pod", "PodGroup"):
            return dict(each)
    return {"uid": ""}


def _owner_reference(resource: str, meta: Item) -> Item:
    named = {"name": meta["name"], "uid": meta["uid"], "controller": True}
    if resource == _PODS:
        return {"apiVersion": "v1", "kind": "Pod", **named, "blockOwnerDeletion": True}
    return {"apiVersion": kinds.POD_GROUPS.api_version, "kind": kinds.POD_GROUPS.kind, **named}


def _base_name(owner: str, claim: str) -> str:
    """Returns the part of a generated name that is not random. Of long names both parts are cut."""
    full = f"{owner}-{claim}-"
    if len(full) <= _MAX_BASE:
        return full
    return f"{owner[: len(owner) * _MAX_BASE // len(full)]}-{claim[: len(claim) * _MAX_BASE // len(full)]}"


def _pod_claim(claim: Item) -> str:
    """Returns the name that the pod's spec has for a claim that was made for it."""
    return str(claim["metadata"].get("annotations", {}).get(POD_CLAIM_NAME, ""))


def _reserved(claim: Item) -> list[Item]:
    return list(claim.get("status", {}).get("reservedFor") or ())
