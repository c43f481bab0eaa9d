"""A rule that looks at other pods and its reference must say the same: from the cached table, which is repaired and
never made anew, about some nodes, and about one."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from kubenexus.api.core import Node, Pod
from kubenexus.cycle.class_table import ClassTable
from kubenexus.framework.verdict import Code, code_of
from kubenexus.state.view import Nodes, OneNode
from kubenexus.testing.harness import NodeInfo, ReferenceCluster
from tests.plugins import reference
from tests.plugins.checked_cluster import PluginCluster, only
from tests.plugins.random_cluster import RandomCluster

BEFORE: dict[str, Any] = {
    "NodeUnschedulable": reference.NodeUnschedulable(),
    "TaintToleration": reference.TaintToleration(),
    "NodeAffinity": reference.NodeAffinity(),
}
Said = dict[str, tuple[str, Code] | None]  # what a rule says against each node


class PluginReference(Protocol):
    def refusal(self, pod: Pod, node: Node, cluster: PluginCluster) -> tuple[str, Code] | None: ...
    def scores(self, pod: Pod, feasible: list[Node], cluster: PluginCluster) -> dict[str, int] | None: ...
    def normalized(self, raw: Mapping[str, int]) -> dict[str, int]: ...


def judge(
    seed: int,
    plugin: str,
    plugin_reference: PluginReference,
    *,
    steps: int = 6,
    pods: int = 5,
    looks: float = 1.0,
    watch: Callable[[PluginCluster, Pod], Iterable[str]] = lambda scene, pod: (),
    **args: Any,
) -> Counter[str]:
    """A random cluster, random events, and after each of them some pods are looked at (`looks`: how likely each is).
    Returns how often what was seen, `watch` being a further pair of eyes."""
    random_cluster, seen = RandomCluster(seed), Counter[str]()
    cluster = PluginCluster.of(random_cluster, only(*BEFORE, plugin, **args))
    waiting = [random_cluster.pod(f"w{i}") for i in range(pods)]
    for _ in range(steps):
        for pod in [pod for pod in waiting if random_cluster.random() < looks]:
            seen += compare(cluster, pod, plugin, plugin_reference)
            seen.update(watch(cluster, pod))
        cluster.tell(*random_cluster.event())
    return seen


def caught(look: Callable[[int], object], most: int = 80, first: int = 0) -> bool:
    """Whether a difference is found on any of so many clusters. `first` is one that is known to show it, and saves the
    others: should it no longer do so, all of them are looked at."""
    for seed in dict.fromkeys((first, *range(most))):
        try:
            look(seed)
        except AssertionError:
            return True
    return False


def compare(cluster: PluginCluster, pod: Pod, plugin: str, plugin_reference: PluginReference) -> Counter[str]:
    columns = cluster.ledger.nodes
    table = cluster.planner.class_cache.lookup(pod, columns).table
    expected: Said = {name: plugin_reference.refusal(pod, node, cluster) for name, node in cluster.nodes.items()}
    for shown, said in _refusals(table, plugin, cluster):
        assert said == {name: expected[name] for name in said}, (shown, pod)
    feasible = [node for name, node in cluster.nodes.items() if not expected[name] and usable(pod, node)]
    assert {name for name, row in columns.row_of.items() if table.feasible[row]} == {n.metadata.name for n in feasible}
    seen = Counter(why[0] if why else "accepted" for why in expected.values())
    raw = plugin_reference.scores(pod, feasible, cluster) if feasible else {}
    if feasible:
        _compare_scores(table, plugin, raw, {} if raw is None else plugin_reference.normalized(raw), cluster)
    seen["no score" if raw is None else "scores differ" if len(set(raw.values())) > 1 else "scores are equal"] += 1
    return seen


def _compare_scores(
    table: ClassTable, plugin: str, raw: dict[str, int] | None, normalized: dict[str, int], cluster: PluginCluster
) -> None:
    score = next((score for score in table.scores if score.plugin.name == plugin), None)
    if raw is None or score is None or not score.active:
        assert not any((raw or {}).values()), "a score was left out"
        assert raw is not None or score is None or not score.active, "a score that should have been left out"
        return
    shown = {name: score.shown_at(cluster.ledger.nodes.row_of[name]) for name in raw}
    assert {name: score.at(cluster.ledger.nodes.row_of[name]) for name in raw} == raw
    assert {name: each.normalized for name, each in shown.items()} == normalized


def usable(pod: Pod, node: Node) -> bool:
    return not any(rule.filter_one(pod, NodeInfo(node, (), ReferenceCluster())) for rule in BEFORE.values())


def _refusals(table: ClassTable, plugin: str, cluster: PluginCluster) -> list[tuple[str, Said]]:
    columns = cluster.ledger.nodes
    rows = list(columns.row_of.values())
    column = next((each for each in table.filters if each.plugin.name == plugin), None)
    if column is None:
        return [("left out", dict.fromkeys(cluster.nodes))]

    def said(bits: int) -> tuple[str, Code] | None:
        reasons = column.reasons.read(bits)
        assert len(reasons) <= 1
        return (reasons[0].text, code_of(reasons)) if reasons else None

    def asked(view: Nodes, at: list[int]) -> Said:
        bits = column.ask(table.pod, view)
        every = [bits] * len(at) if isinstance(bits, int) else bits.tolist()
        return {columns.names[row]: said(each) for row, each in zip(at, every, strict=True)}

    found = [("cached", {columns.names[row]: said(column.at(row)) for row in rows})]
    found.append(("some", asked(Nodes(columns, np.array(rows[::-2], np.int64)), rows[::-2])))
    if column.traits.supports_one_node:
        found += [("one", asked(OneNode(columns, row), [row])) for row in rows]
    return found
