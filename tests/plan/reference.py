"""A naive scheduler for one pod: kube-scheduler's cycle node by node, with the naive rules of `tests.plugins`."""

from typing import Any, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.node_selectors import parse_preferred
from kubenexus.base.errors import Malformed
from kubenexus.framework.profile import EnabledPlugin, Profile
from kubenexus.framework.verdict import Code
from kubenexus.testing.harness import NodeInfo, ReferenceCluster
from tests.plugins import reference

FILTERS: dict[str, Any] = {
    name: reference.REFERENCES[name]
    for name in (
        *("NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
        *("DynamicResources", "NodeDeclaredFeatures"),
    )
}
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
SCORES: dict[str, tuple[Any, int]] = {name: (reference.REFERENCES[name], weight) for name, weight in WEIGHTS.items()}
# The rules above and no others, in kube-scheduler's order and with its weights.
NODE_LOCAL = Profile(
    "node-local",
    tuple(
        EnabledPlugin(name, SCORES[name][1] if name in SCORES else 1)
        for name in dict.fromkeys([*list(FILTERS)[:-1], *SCORES, "NodeDeclaredFeatures"])
    ),
)
FENCED = "node(s) ran a pod that could not be read"

Scored = dict[str, tuple[int, int]]  # raw and normalised, by plugin


class Judgement(NamedTuple):
    """`counts` of nodes by reason, `first` refusal of each refused node, `feasible` ones with their scores; or
    `message`, when the pod was refused before any node was looked at."""

    counts: dict[str, int]
    first: dict[str, list[tuple[str, Code]]]
    feasible: dict[str, Scored]
    message: str = ""
    failed: bool = False

    def total(self, node: str) -> int:
        return sum(SCORES[plugin][1] * normalized for plugin, (_, normalized) in self.feasible[node].items())


def judge(pod: Pod, cluster: ReferenceCluster) -> Judgement:
    only, by, message = _prefilter(pod)
    if message:
        return Judgement({}, {}, {}, message)
    infos = cluster.infos()
    looked_at = {name: info for name, info in infos.items() if only is None or name in only}
    first = {name: _refusal(pod, info) for name, info in looked_at.items()}
    first = {name: reasons for name, reasons in first.items() if reasons}
    counts: dict[str, int] = {}
    for reasons in first.values():
        for text, _ in reasons:
            counts[text] = counts.get(text, 0) + 1
    if len(looked_at) < len(infos):
        counts[f"node(s) didn't satisfy plugin(s) [{' '.join(by)}]"] = len(infos) - len(looked_at)
    free = [info for name, info in looked_at.items() if name not in first]
    waits_for = [info for info in free if info.node.metadata.name == pod.status.nominated_node_name]
    feasible, failed = _scored(pod, waits_for or free)
    return Judgement(counts, first, feasible, failed=failed)


def _prefilter(pod: Pod) -> tuple[set[str] | None, list[str], str]:
    """The nodes that are left and the plugins that restricted them, or why there can be none."""
    sets = {}
    if pod.spec.node_name:
        sets["NodeName"] = {pod.spec.node_name}
    pinned = _pinned(pod)
    if pinned is not None:
        if not pinned:
            return None, [], "pod affinity terms conflict"
        sets["NodeAffinity"] = pinned
    if not sets:
        return None, [], ""
    left, by = set.intersection(*sets.values()), sorted(sets)
    if left:
        return left, by, ""
    return None, [], f"node(s) didn't satisfy plugin(s) [{' '.join(by)}] simultaneously"


def _pinned(pod: Pod) -> set[str] | None:
    names: set[str] = set()
    for term in reference.required_terms(pod.spec.affinity) or []:
        allowed = [set(f.values) for f in term.match_fields if (f.key, f.operator) == ("metadata.name", "In")]
        if not allowed:
            return None
        names |= set.intersection(*allowed)
    return names if reference.required_terms(pod.spec.affinity) else None


def _refusal(pod: Pod, info: NodeInfo) -> list[tuple[str, Code]]:
    """With the pods counted in that wait for this node and are at least as important, and without them."""
    name = info.node.metadata.name
    waiting = [
        other
        for other in info.cluster.nominees(name)
        if other.spec.priority >= pod.spec.priority and other.metadata.uid != pod.metadata.uid
    ]
    if waiting:
        refused = _first(pod, info._replace(pods=(*info.pods, *waiting)))
        if refused:
            return refused
    if name in info.cluster.unreadable.values():
        return [(FENCED, Code.UNSCHEDULABLE)]
    return _first(pod, info)


def _first(pod: Pod, info: NodeInfo) -> list[tuple[str, Code]]:
    for rule in FILTERS.values():
        reasons: list[tuple[str, Code]] = rule.filter_one(pod, info)
        if reasons:
            return reasons
    return []


def _scored(pod: Pod, infos: list[NodeInfo]) -> tuple[dict[str, Scored], bool]:
    found: dict[str, Scored] = {info.node.metadata.name: {} for info in infos}
    affinity = pod.spec.affinity
    try:
        parse_preferred(affinity.node_affinity.preferred if affinity and affinity.node_affinity else [])
    except Malformed:
        return found, True
    for plugin, (rule, _) in SCORES.items():
        raw = {info.node.metadata.name: rule.score_one(pod, info) for info in infos}
        if None in raw.values():
            continue
        most = max(raw.values(), default=0)
        for name, score in raw.items():
            found[name][plugin] = (score, _normalized(plugin, score, most))
    return found, False


def _normalized(plugin: str, score: int, most: int) -> int:
    if plugin == "NodeAffinity":
        return score * 100 // most if most else score
    if plugin == "TaintToleration":
        return 100 - score * 100 // most if most else 100
    return score
