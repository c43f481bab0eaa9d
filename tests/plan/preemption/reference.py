"""kube-scheduler's preemption on plain objects: no transaction, no columns of our own making.

Whether the pod fits beside some pods is found out on a new ledger that holds just these. The rest is plain Python.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubenexus.api.core import Node, Pod
from kubenexus.api.selectors import compile_selector
from kubenexus.api.workloads import PodDisruptionBudget
from kubenexus.cycle.nominated_pods import filter_with_nominated_pods
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.default_preemption import NodeOutcomes
from kubenexus.state.ledger import Ledger


class Cluster(NamedTuple):
    """All objects, pods in order of arrival."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    budgets: Sequence[PodDisruptionBudget] = ()

    def ledger(self, without: Iterable[str] = ()) -> Ledger:
        """A new ledger without these pods, by key."""
        left_out, ledger = set(without), Ledger()
        for node in self.nodes:
            ledger.upsert_node(node)
        for pod in self.pods:
            if pod.key not in left_out:
                ledger.upsert_pod(pod)
        for budget in self.budgets:
            ledger.upsert_disruption_budget(budget)
        return ledger


class Outcome(NamedTuple):
    """The victims of each candidate in order and its violations, and the nodes that are equally good."""

    candidates: dict[str, tuple[tuple[str, ...], int]]
    best: set[str]


def potential_nodes(pod: Pod, cluster: Cluster, plugins: ProfilePlugins) -> set[str]:
    ledger, planner = cluster.ledger(), Planner(plugins)
    snapshot = ledger.snapshot()
    classified = planner.class_cache.lookup(pod, ledger.nodes)
    yielding = filter_with_nominated_pods(pod, classified.table, snapshot)
    found = NodeOutcomes(classified, ledger.nodes, yielding).potential
    return {name for name, row in ledger.nodes.row_of.items() if found[row]}


def preempt(pod: Pod, cluster: Cluster, plugins: ProfilePlugins) -> Outcome:
    """What kube-scheduler's DefaultPreemption finds."""
    found = {}
    for node in sorted(potential_nodes(pod, cluster, plugins)):
        outcome = _on_node(pod, node, cluster, plugins)
        if outcome is not None:
            found[node] = outcome
    return Outcome(found, _best(found, {each.key: each for each in cluster.pods}))


def fits(pod: Pod, node: str, cluster: Cluster, plugins: ProfilePlugins, without: Iterable[str]) -> bool:
    ledger, planner = cluster.ledger(without), Planner(plugins)
    classified = planner.class_cache.lookup(pod, ledger.nodes)
    yielding = filter_with_nominated_pods(pod, classified.table, ledger.snapshot())
    row = ledger.nodes.row_of[node]
    taken = yielding is not None and row in yielding.rows.tolist()
    return classified.rejection is None and bool(classified.table.feasible[row]) and not taken


def _on_node(pod: Pod, node: str, cluster: Cluster, plugins: ProfilePlugins) -> tuple[tuple[str, ...], int] | None:
    there = [each for each in cluster.pods if each.spec.node_name == node]
    lower = [each for each in there if each.spec.priority < pod.spec.priority]
    gone = {each.key for each in lower}
    if not lower or not fits(pod, node, cluster, plugins, gone):
        return None
    ordered = sorted(lower, key=_importance)
    violating = _violating(ordered, cluster.budgets)
    violations = 0
    for each in [*[p for p in ordered if p.key in violating], *[p for p in ordered if p.key not in violating]]:
        if fits(pod, node, cluster, plugins, gone - {each.key}):
            gone.remove(each.key)
        elif each.key in violating:
            violations += 1
    return tuple(each.key for each in ordered if each.key in gone), violations


def _importance(pod: Pod) -> tuple[int, str]:
    return -pod.spec.priority, pod.status.start_time or "9999"  # none: started now


def _violating(ordered: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]) -> set[str]:
    allowed = {(b.metadata.namespace, b.metadata.name): b.status.disruptions_allowed for b in budgets}
    found = set()
    for pod in ordered:
        for budget in sorted(budgets, key=lambda b: b.metadata.name):
            selector = compile_selector(budget.spec.selector)
            meant = budget.metadata.namespace == pod.metadata.namespace and selector.matches(pod.metadata.labels)
            if not (pod.metadata.labels and selector.requirements and meant):
                continue
            if pod.metadata.name in budget.status.disrupted_pods:
                continue
            key = (budget.metadata.namespace, budget.metadata.name)
            allowed[key] -= 1
            if allowed[key] < 0:
                found.add(pod.key)
                break
    return found


def _best(found: dict[str, tuple[tuple[str, ...], int]], pods: dict[str, Pod]) -> set[str]:
    """One tuple for all criteria: tuples are compared item by item."""
    costs = {}
    for node, (victims, violations) in found.items():
        gone = [pods[key] for key in victims]
        top = max(each.spec.priority for each in gone)
        first = min(each.status.start_time or "9999" for each in gone if each.spec.priority == top)
        lost = tuple(-ord(letter) for letter in first)  # the later it started, the better
        costs[node] = (violations, top, sum(p.spec.priority + 2**31 for p in gone), len(gone), lost)
    return {node for node, cost in costs.items() if cost == min(costs.values())}
