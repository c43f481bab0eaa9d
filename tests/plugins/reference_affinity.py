"""InterPodAffinity a second time, for one pod and one node: plain loops over all pods, written from Kubernetes'
documentation and, where that is silent, from what kube-scheduler does."""

from collections.abc import Iterator, Mapping

from kubenexus.api.core import Node, Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.framework.verdict import Code
from tests.plugins.checked_cluster import PluginCluster

Refusal = tuple[str, Code]
FAR = ("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
NEAR = ("node(s) didn't match pod anti-affinity rules", Code.UNSCHEDULABLE)
UNWELCOME = ("node(s) didn't satisfy existing pods anti-affinity rules", Code.UNSCHEDULABLE)


class ReferenceAffinity:
    """`hard_weight`: points for a node whose pods insist on this one; `own_only`: a pod without wishes has no score."""

    def __init__(self, hard_weight: int = 1, own_only: bool = False) -> None:
        self.hard_weight, self.own_only = hard_weight, own_only

    # --- may it run there? ------------------------------------------------------------------------------------------

    def refusal(self, pod: Pod, node: Node, cluster: PluginCluster) -> Refusal | None:
        """The first of the three rules that the node breaks."""
        if not self._joins(pod, node, cluster):
            return FAR
        for other, its_node in placed(cluster):
            for term in away(pod).required:
                if means(term, pod, other, cluster) and together(term, node, its_node):
                    return NEAR
        for other, its_node in placed(cluster):
            for term in away(other).required:
                if means(term, other, pod, cluster, strangers=True) and together(term, node, its_node):
                    return UNWELCOME
        return None

    def _joins(self, pod: Pod, node: Node, cluster: PluginCluster) -> bool:
        """Whoever is joined must be meant by all terms. Where there is nobody, one that means itself may begin."""
        terms = near(pod).required
        if any(term.topology_key not in node.metadata.labels for term in terms):
            return False
        friends = [n for other, n in placed(cluster) if all(means(t, pod, other, cluster) for t in terms)]
        if all(any(together(term, node, its_node) for its_node in friends) for term in terms):
            return True
        somewhere = any(term.topology_key in n.metadata.labels for n in friends for term in terms)
        return not somewhere and all(means(term, pod, pod, cluster) for term in terms)

    # --- how good is it? --------------------------------------------------------------------------------------------

    def scores(self, pod: Pod, feasible: list[Node], cluster: PluginCluster) -> dict[str, int] | None:
        if self.own_only and not near(pod).preferred and not away(pod).preferred:
            return None
        return {node.metadata.name: self._points(pod, node, cluster) for node in feasible}

    def _points(self, pod: Pod, node: Node, cluster: PluginCluster) -> int:
        points = 0
        for other, its_node in placed(cluster):
            for weight, term in wishes(pod):
                if means(term, pod, other, cluster) and together(term, node, its_node):
                    points += weight
            insists = [(self.hard_weight, term) for term in near(other).required]
            for weight, term in [*insists, *wishes(other)]:
                if means(term, other, pod, cluster, strangers=True) and together(term, node, its_node):
                    points += weight
        return points

    def normalized(self, raw: Mapping[str, int]) -> dict[str, int]:
        """The least becomes 0 and the most 100; 0 where all are equal."""
        least, most = min(raw.values()), max(raw.values())
        return {n: int(100.0 * ((r - least) / (most - least))) if most > least else 0 for n, r in raw.items()}


# --- words ------------------------------------------------------------------------------------------------------------


def near(pod: Pod) -> PodAffinity:
    return (pod.spec.affinity and pod.spec.affinity.pod_affinity) or PodAffinity()


def away(pod: Pod) -> PodAffinity:
    return (pod.spec.affinity and pod.spec.affinity.pod_anti_affinity) or PodAffinity()


def wishes(pod: Pod) -> list[tuple[int, PodAffinityTerm]]:
    def weighted(preferred: list[WeightedPodAffinityTerm], sign: int) -> list[tuple[int, PodAffinityTerm]]:
        return [(sign * each.weight, each.pod_affinity_term) for each in preferred]

    return weighted(near(pod).preferred, 1) + weighted(away(pod).preferred, -1)


def placed(cluster: PluginCluster) -> Iterator[tuple[Pod, Node]]:
    """Pods on nodes that are there; those that are being deleted, too."""
    for pod in cluster.pods.values():
        if pod.spec.node_name in cluster.nodes:
            yield pod, cluster.nodes[pod.spec.node_name]


def together(term: PodAffinityTerm, one: Node, other: Node) -> bool:
    key = term.topology_key
    return key in one.metadata.labels and one.metadata.labels[key] == other.metadata.labels.get(key)


def means(term: PodAffinityTerm, owner: Pod, other: Pod, cluster: PluginCluster, *, strangers: bool = False) -> bool:
    """`strangers`: a namespace nobody has heard of counts as one without labels; else it is no namespace. What
    `matchLabelKeys` and `mismatchLabelKeys` say, the API server has put into the selector."""
    if not selects(term.label_selector, other.metadata.labels):
        return False
    namespace = other.metadata.namespace
    if not term.namespaces and term.namespace_selector is None:
        return namespace == owner.metadata.namespace
    if namespace in term.namespaces or term.namespace_selector == LabelSelector():
        return True
    if namespace not in cluster.namespaces and not strangers:
        return False
    return selects(term.namespace_selector, cluster.namespaces.get(namespace, {}))


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """No selector selects nothing, an empty one everything."""
    if selector is None:
        return False
    exact = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return exact and all(holds(each, labels) for each in selector.match_expressions)


def holds(wanted: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    match wanted.operator:
        case "In":
            return labels.get(wanted.key) in wanted.values
        case "NotIn":
            return labels.get(wanted.key) not in wanted.values
        case "Exists":
            return wanted.key in labels
    return wanted.key not in labels
