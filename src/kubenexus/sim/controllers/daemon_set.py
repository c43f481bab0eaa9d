"""The DaemonSet controller: one pod on every node that the set selects and may run on.

Each pod gets an affinity to the name of its node and is left to the scheduler, as upstream does it.
"""

from collections.abc import Sequence

import msgspec

from kubenexus.api.core import PodSpec, Toleration
from kubenexus.api.node_selectors import NAME_FIELD, matches, node_selector_term, parse_required, required_node_names
from kubenexus.api.tolerations import untolerated
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.client.calls import Call
from kubenexus.sim.controllers import owner_refs
from kubenexus.sim.controllers.object_cache import ControllerCache
from kubenexus.sim.controllers.reconcile_result import MAX_PODS_PER_STEP, ReconcileResult, earliest, without_zero_fields
from kubenexus.sim.controllers.replica_set import waiting
from kubenexus.sim.controllers.revisions import REVISION_HASH, hash_of
from kubenexus.sim.controllers.rolling import share
from kubenexus.sim.controllers.types import DAEMON_SETS, Item, Node, Pod

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ALWAYS = {
    "not-ready": "NoExecute",
    "unreachable": "NoExecute",
    "disk-pressure": "NoSchedule",
    "memory-pressure": "NoSchedule",
    "pid-pressure": "NoSchedule",
    "unschedulable": "NoSchedule",
}
PAUSE = 1.0  # seconds before a failed pod is replaced on the same node


def reconcile(item: Item, pods: Sequence[Pod], cache: ControllerCache, now: float) -> ReconcileResult:
    nodes = [cache.nodes[name] for name in sorted(cache.nodes)]
    wanted = [node.metadata.name for node in nodes if _runs_on(item, node)]
    by_node = {name: [pod for pod in pods if node_of(pod) == name] for name in wanted}
    revision = hash_of(item["spec"]["template"])
    stray = [pod for pod in pods if node_of(pod) not in by_node]
    calls: list[Call] = []
    if "deletionTimestamp" not in item["metadata"]:
        calls = _calls(item, by_node, stray, revision, now)[:MAX_PODS_PER_STEP]
    status = _status(item, by_node, stray, revision, now)
    failed = [
        parse_timestamp(pod.metadata.creation_timestamp, 0.0) + PAUSE for pod in pods if pod.status.phase == "Failed"
    ]
    again = earliest(waiting(pods, _wait(item), now), *(each for each in failed if each > now))
    return ReconcileResult(status, calls, again)


def node_of(pod: Pod) -> str:
    """Returns the pod's node, or the node that its affinity requires."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity
    selector = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    names = required_node_names(selector) if selector is not None else None
    return next(iter(names)) if names and len(names) == 1 else ""


def _wait(item: Item) -> int:
    seconds: int = item["spec"].get("minReadySeconds", 0)
    return seconds


# ---- which nodes -----------------------------------------------------------------------------------------------------


def _tolerations(spec: Item) -> list[Item]:
    """Returns the tolerations of the template and those of every daemon."""
    keys = _ALWAYS | ({"network-unavailable": "NoSchedule"} if spec.get("hostNetwork") else {})
    always = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": keys[key]} for key in keys]
    return [*spec.get("tolerations", ()), *always]


def _runs_on(item: Item, node: Node) -> bool:
    said = item["spec"]["template"]["spec"]
    spec = msgspec.convert({"nodeSelector": said.get("nodeSelector", {})}, PodSpec)
    labels, name = node.metadata.labels, node.metadata.name
    if said.get("nodeName", name) != name or not matches(node_selector_term(spec.node_selector), name, labels):
        return False
    affinity = msgspec.convert({"affinity": said.get("affinity")}, PodSpec).affinity
    wish = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    if wish is not None and not parse_required(wish).matches(name, labels):
        return False
    return not untolerated(msgspec.convert(_tolerations(said), list[Toleration]), node.spec.taints)


# ---- calls -----------------------------------------------------------------------------------------------------------


def _calls(item: Item, by_node: dict[str, list[Pod]], stray: Sequence[Pod], revision: str, now: float) -> list[Call]:
    calls = [owner_refs.delete_child(pod) for pod in stray if not pod.terminating]
    for node, pods in by_node.items():
        alive = sorted((pod for pod in pods if not pod.finished), key=_first)
        calls += [owner_refs.delete_child(pod) for pod in alive[1:] if not pod.terminating]
        calls += [
            owner_refs.delete_child(pod) for pod in pods if pod.finished and not pod.terminating and _over(pod, now)
        ]
        if not pods:
            calls.append(owner_refs.create_child(item, _pod(item, node, revision)))
    return calls or _replaced(item, by_node, revision, now)


def _first(pod: Pod) -> tuple[bool, bool, str, str]:
    """Sort key for the pods of one node: the first stays, a bound one before others, then the oldest."""
    return pod.terminating, not pod.spec.node_name, pod.metadata.creation_timestamp, pod.metadata.name


def _over(pod: Pod, now: float) -> bool:
    return pod.status.phase == "Succeeded" or parse_timestamp(pod.metadata.creation_timestamp, 0.0) + PAUSE <= now


def _replaced(item: Item, by_node: dict[str, list[Pod]], revision: str, now: float) -> list[Call]:
    """Rolling update: deletes pods of an old template while at most maxUnavailable nodes are without a pod."""
    strategy = item["spec"].get("updateStrategy", {})
    if strategy.get("type") != "RollingUpdate":
        return []
    said = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    most = max(share(said, len(by_node), up=True), 1)
    well = {node: any(pod.active and pod.available(_wait(item), now) for pod in by_node[node]) for node in by_node}
    old = [
        (well[node], pod)
        for node, pods in by_node.items()
        for pod in pods
        if pod.active and pod.metadata.labels.get(REVISION_HASH) != revision
    ]
    sick = [pod for fine, pod in old if not fine]
    capacity = most - sum(not fine for fine in well.values())
    return [owner_refs.delete_child(pod) for pod in [*sick, *[pod for fine, pod in old if fine][: max(capacity, 0)]]]


def _pod(item: Item, node: str, revision: str) -> Item:
    labels = {REVISION_HASH: revision, "pod-template-generation": str(item["metadata"]["generation"])}
    pod = owner_refs.pod_of(DAEMON_SETS, item, labels=labels)
    spec = pod["spec"]
    spec["tolerations"] = _tolerations(spec)
    spec["affinity"] = _tied(spec.get("affinity") or {}, node)
    return pod


def _tied(affinity: Item, node: str) -> Item:
    """Returns the affinity with one node by name as its requirement. `_runs_on` has checked the original one."""
    field = {"key": NAME_FIELD, "operator": "In", "values": [node]}
    terms = {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    return {**affinity, "nodeAffinity": {**affinity.get("nodeAffinity", {}), **terms}}


# ---- status ----------------------------------------------------------------------------------------------------------


def _status(item: Item, by_node: dict[str, list[Pod]], stray: Sequence[Pod], revision: str, now: float) -> Item:
    first = {node: min(pods, key=_first) for node, pods in by_node.items() if pods}
    active = [pod for pod in first.values() if pod.active]
    available = sum(pod.available(_wait(item), now) for pod in active)
    status = {
        "currentNumberScheduled": len(first),
        "numberMisscheduled": len({node_of(pod) for pod in stray if pod.active}),
        "desiredNumberScheduled": len(by_node),
        "numberReady": sum(pod.ready for pod in active),
        "updatedNumberScheduled": sum(pod.metadata.labels.get(REVISION_HASH) == revision for pod in active),
        "numberAvailable": available,
        "numberUnavailable": len(by_node) - available,
        "observedGeneration": item["metadata"]["generation"],
    }
    always = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    return without_zero_fields(status, *always)
