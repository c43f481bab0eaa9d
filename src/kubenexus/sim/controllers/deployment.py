"""The Deployment controller: one ReplicaSet for each version of the template, and the rollout from one to the next."""

from collections.abc import Sequence
from typing import Any

from kubenexus.client import verbs
from kubenexus.client.calls import Call
from kubenexus.sim.controllers import deployment_status, rolling
from kubenexus.sim.controllers.object_cache import ControllerCache
from kubenexus.sim.controllers.owner_refs import RESOURCES, reference
from kubenexus.sim.controllers.reconcile_result import ReconcileResult, WorkloadEvent
from kubenexus.sim.controllers.revisions import TEMPLATE_HASH, hash_of, without_hash
from kubenexus.sim.controllers.rolling import Sizes
from kubenexus.sim.controllers.types import DEPLOYMENTS, REPLICA_SETS, Item, Owned

_DOMAIN = "deployment.kubernetes.io"
REVISION = f"{_DOMAIN}/revision"


def reconcile(item: Item, children: Sequence[Owned], cache: ControllerCache, now: float) -> ReconcileResult:
    """`children` are the ReplicaSets of the Deployment."""
    found = [cache.item((REPLICA_SETS, f"{kin.metadata.namespace}/{kin.metadata.name}")) for kin in children]
    sets = sorted((each for each in found if each is not None), key=_age)
    newest = next((each for each in sets if without_hash(each["spec"]["template"]) == _template(item)), None)
    older = [each for each in sets if each is not newest]
    if "deletionTimestamp" in item["metadata"]:
        return ReconcileResult(deployment_status.status(item, newest, older, now))
    if newest is None and not item["spec"].get("paused"):
        return _begin(item, older, cache, now)
    return _go_on(item, newest, older, cache, now)


def _template(item: Item) -> Item:
    return without_hash(item["spec"]["template"])


def _age(one: Item) -> tuple[int, str]:
    return revision(one), one["metadata"]["name"]


def revision(item: Item) -> int:
    text = item["metadata"].get("annotations", {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


# ---- a new version ---------------------------------------------------------------------------------------------------


def _begin(item: Item, older: Sequence[Item], cache: ControllerCache, now: float) -> ReconcileResult:
    """Creates a ReplicaSet for the current template, as large as the limits allow now."""
    meta = item["metadata"]
    collisions = item.get("status", {}).get("collisionCount", 0)
    mark = hash_of(_template(item), collisions)
    name = f"{meta['name']}-{mark}"
    if cache.item((REPLICA_SETS, f"{meta['namespace']}/{name}")) is not None:  # a ReplicaSet of another owner
        return ReconcileResult({**item.get("status", {}), "collisionCount": collisions + 1}, again=now)
    size = rolling.first_size(item, older, _old_pods(older, cache))
    made = _replica_set(item, name, mark, size, 1 + max((revision(each) for each in older), default=0))
    status = deployment_status.status(item, None, older, now, created=name)
    notes = [WorkloadEvent("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")] if size else []
    call = verbs.create(RESOURCES[REPLICA_SETS], made, meta["namespace"])
    return ReconcileResult(
        status, [call], notes=notes, annotations={REVISION: made["metadata"]["annotations"][REVISION]}
    )


def _replica_set(item: Item, name: str, mark: str, size: int, number: int) -> Item:
    spec, template = item["spec"], item["spec"]["template"]
    labels = {**template["metadata"].get("labels", {}), TEMPLATE_HASH: mark}
    selector = dict(spec["selector"])
    selector["matchLabels"] = {**selector.get("matchLabels", {}), TEMPLATE_HASH: mark}
    wanted = {"replicas": size, "selector": selector, "minReadySeconds": spec.get("minReadySeconds", 0)}
    meta = {"name": name, "labels": labels, "annotations": {REVISION: str(number), **_sizes_of(item)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {**meta, "ownerReferences": [reference(DEPLOYMENTS, item)]},
        "spec": {**wanted, "template": {**template, "metadata": {**template["metadata"], "labels": labels}}},
    }


# ---- a rollout in progress -------------------------------------------------------------------------------------------


def _go_on(
    item: Item, newest: Item | None, older: Sequence[Item], cache: ControllerCache, now: float
) -> ReconcileResult:
    sizes = rolling.next_sizes(item, newest, older, _old_pods(older, cache))
    calls, notes = _scaled(item, sizes, [*older, *([newest] if newest else [])])
    noted = _numbered(item, newest, older) if newest is not None else {}
    if newest is not None and noted[REVISION] != str(revision(newest)):
        calls.append(_patched(newest, {"metadata": {"annotations": noted}}))
    if not calls:
        calls += _forgotten(item, newest, older)
    status = deployment_status.status(item, newest, older, now)
    return ReconcileResult(status, calls, deployment_status.deadline(item, status), notes, noted)


def _old_pods(older: Sequence[Item], cache: ControllerCache) -> int:
    """Counts pods of earlier versions that have not ended: the strategy Recreate waits for them."""
    keys = [(REPLICA_SETS, f"{each['metadata']['namespace']}/{each['metadata']['name']}") for each in older]
    return sum(not pod.finished for key in keys for pod in cache.pods.of(key))


def _scaled(item: Item, sizes: Sizes, sets: Sequence[Item]) -> tuple[list[Call], list[WorkloadEvent]]:
    calls, notes = [], []
    for each in sets:
        meta, now = each["metadata"], each["spec"]["replicas"]
        size = sizes.get(meta["name"], now)
        noted = _sizes_of(item)
        if size != now or (size and not noted.items() <= meta.get("annotations", {}).items()):
            calls.append(_patched(each, {"metadata": {"annotations": noted}, "spec": {"replicas": size}}))
        if size != now:
            how = "up" if size > now else "down"
            notes.append(
                WorkloadEvent("ScalingReplicaSet", f"Scaled {how} replica set {meta['name']} from {now} to {size}")
            )
    return calls, notes


def _sizes_of(item: Item) -> dict[str, str]:
    """Returns the annotations of a ReplicaSet about the Deployment: desired and maximal number of pods."""
    wanted = item["spec"]["replicas"]
    surge = 0 if rolling.recreates(item) else rolling.limits(item)[0]
    return {f"{_DOMAIN}/desired-replicas": str(wanted), f"{_DOMAIN}/max-replicas": str(wanted + surge)}


def _numbered(item: Item, newest: Item, older: Sequence[Item]) -> dict[str, str]:
    """Returns the revision of the newest ReplicaSet: the highest, also if it is an old one (`kubectl rollout undo`)."""
    return {REVISION: str(max([revision(newest), *(revision(each) + 1 for each in older)]))}


def _forgotten(item: Item, newest: Item | None, older: Sequence[Item]) -> list[Call]:
    """Deletes empty old ReplicaSets beyond `revisionHistoryLimit`."""
    if newest is None or newest.get("status", {}).get("availableReplicas", 0) < item["spec"]["replicas"]:
        return []
    empty = [each for each in older if not each["spec"]["replicas"] and not each["status"].get("replicas")]
    surplus = max(len(empty) - item["spec"].get("revisionHistoryLimit", 10), 0)
    metas = [each["metadata"] for each in empty[:surplus]]
    return [verbs.delete(RESOURCES[REPLICA_SETS], meta["namespace"], meta["name"], meta["uid"]) for meta in metas]


def _patched(one: Item, body: dict[str, Any]) -> Call:
    meta = one["metadata"]
    return verbs.patch(RESOURCES[REPLICA_SETS], meta["namespace"], meta["name"], body)
