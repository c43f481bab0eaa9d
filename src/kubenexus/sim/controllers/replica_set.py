"""The ReplicaSet controller: keeps a number of identical pods. Surplus pods are deleted in upstream's order."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from kubenexus.base.timestamps import parse_timestamp
from kubenexus.sim.controllers import owner_refs
from kubenexus.sim.controllers.object_cache import ControllerCache
from kubenexus.sim.controllers.reconcile_result import MAX_PODS_PER_STEP, ReconcileResult, earliest, without_zero_fields
from kubenexus.sim.controllers.types import REPLICA_SETS, Item, Pod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "": 0, "Unknown": 1, "Running": 2}


def reconcile(item: Item, pods: Sequence[Pod], _: ControllerCache, now: float) -> ReconcileResult:
    active = [pod for pod in pods if pod.active]
    lacking = item["spec"]["replicas"] - len(active)
    calls = []
    if "deletionTimestamp" not in item["metadata"]:
        calls = [_one_more(item) for _ in range(min(lacking, MAX_PODS_PER_STEP))]
        calls += [owner_refs.delete_child(pod) for pod in surplus(active, -lacking)[:MAX_PODS_PER_STEP]]
    status, again = _status(item, active, pods, now)
    return ReconcileResult(status, calls, again)


def surplus(active: Sequence[Pod], count: int) -> list[Pod]:
    """Returns the pods to delete first: without a node, not running, not ready, low cost, crowded node, recently ready,
    young."""
    if count <= 0:
        return []
    pods_on_node = Counter(pod.spec.node_name for pod in active if pod.spec.node_name)
    return sorted(active, key=_deletion_order(pods_on_node))[:count]


def _deletion_order(pods_on_node: Counter[str]) -> Callable[[Pod], tuple[Any, ...]]:
    def rank(pod: Pod) -> tuple[Any, ...]:
        node, since = pod.spec.node_name, pod.ready_since
        placed = (bool(node), _PHASES.get(pod.status.phase, 0), since is not None)
        age = (-(since or 0.0), -parse_timestamp(pod.metadata.creation_timestamp, 0.0), pod.metadata.name)
        return (*placed, _cost(pod), -pods_on_node[node], *age)

    return rank


def _cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _one_more(item: Item) -> Any:
    return owner_refs.create_child(item, owner_refs.pod_of(REPLICA_SETS, item, labels={}))


def _status(item: Item, active: Sequence[Pod], pods: Sequence[Pod], now: float) -> tuple[Item, float | None]:
    wait = item["spec"].get("minReadySeconds", 0)
    wanted = item["spec"]["template"]["metadata"].get("labels", {}).items()
    status = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(wanted <= pod.metadata.labels.items() for pod in active),
        "readyReplicas": sum(pod.ready for pod in active),
        "availableReplicas": sum(pod.available(wait, now) for pod in active),
        "terminatingReplicas": sum(pod.terminating and not pod.finished for pod in pods),
        "observedGeneration": item["metadata"]["generation"],
    }
    return without_zero_fields(status, "replicas", "terminatingReplicas"), waiting(active, wait, now)


def waiting(pods: Sequence[Pod], min_ready_seconds: int, now: float) -> float | None:
    """Returns when the next of the pods will have been ready for `min_ready_seconds`, or None."""
    ready = [pod.ready_since for pod in pods if not pod.available(min_ready_seconds, now)]
    return earliest(*(since + min_ready_seconds for since in ready if since is not None))
