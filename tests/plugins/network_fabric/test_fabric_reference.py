"""NetworkFabricScore returns what its reference in plain Python returns, while nodes and members change."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import JobView
from kubenexus.testing.harness import a_ledger
from tests.plugins.network_fabric.fabric_cluster import NAME, PLUGINS, place, worker

FABRIC_WORDS = {"ib": "infiniband", "rdma": "roce", "eth": "ethernet"}
ORDER = ["", "ethernet", "roce", "infiniband", "nvlink", "nvswitch"]
POINTS = {"": 50, "ethernet": 40, "roce": 60, "infiniband": 75, "nvlink": 90, "nvswitch": 100}
RATES = {"25Gbps": 25, "200Gbps": 200, "1.5Tbps": 1500, "fast": 0}
LABELS = {
    "fabric": [*ORDER[1:], "ib", "rdma", "ETH", "none"],
    "fabric.kubenexus.io/type": ["nvlink", "eth"],
    "id": ["f1", "f2"],
    "fabric.kubenexus.io/domain": ["f1", "f3"],
    "clique": ["c1", "c2"],
    "tor": ["t1", "t2"],
    "rack": ["r1", "r2"],
    "topology.kubernetes.io/rack": ["r1", "r3"],
    "zone": ["a", "b"],
    "network.kubenexus.io/az": ["a", "c"],
    "rate": [*RATES],
}
marks = st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in LABELS.items()})
wanted = st.fixed_dictionaries(
    {},
    optional={
        "network-sensitive": st.sampled_from(["true", "false"]),
        "min-fabric-tier": st.sampled_from(["nvlink", "ib", "roce", "eth"]),
        "co-locate": st.sampled_from(["none", "preferred"]),
    },
)


# --- the rule for one node --------------------------------------------------------------------------------------------


def fabric(labels: Mapping[str, str]) -> str:
    for key in ("fabric", "fabric.kubenexus.io/type"):
        word = labels.get(key, "").lower()
        if FABRIC_WORDS.get(word, word) in ORDER[1:]:
            return FABRIC_WORDS.get(word, word)
    return ""


def first(labels: Mapping[str, str], *keys: str) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")


def domains(labels: Mapping[str, str]) -> list[tuple[str, str, int]]:
    """The domains of a node, with the points of a node in the same one."""
    return [
        ("clique", first(labels, "clique"), 100),
        ("tor", first(labels, "tor"), 75),
        ("fabric", first(labels, "id", "fabric.kubenexus.io/domain"), 75),
        ("rack", first(labels, "rack", "topology.kubernetes.io/rack"), 50),
        ("zone", first(labels, "zone", "network.kubenexus.io/az"), 25),
    ]


def expected(
    kind: str, notes: Mapping[str, str], name: str, nodes: Mapping[str, Mapping[str, str]], members: list[str]
) -> int | None:
    """The score of a node, or None if it is refused."""
    labels = nodes[name]
    own = fabric(labels)
    least = notes.get("min-fabric-tier", "")
    if ORDER.index(own) < ORDER.index(FABRIC_WORDS.get(least, least)):
        return None
    tier = POINTS[own]
    if kind in ("training", "batch"):
        tier += {"nvswitch": 15, "infiniband": 15, "roce": -20, "ethernet": -20}.get(own, 0)
    elif kind in ("inference", "service"):
        tier += {"nvswitch": -5, "infiniband": -5, "roce": 10, "ethernet": 10}.get(own, 0)
    tier = max(0, min(100, tier))
    near = 50
    if members and notes.get("co-locate") != "none":
        near = 0
        for member in members:
            if member == name:
                near = 100
            for ours, theirs in zip(domains(labels), domains(nodes[member]), strict=True):
                if ours[1] and ours[1] == theirs[1]:
                    near = max(near, ours[2])
    weight = 3 if notes.get("network-sensitive") == "true" else 2
    fast = RATES.get(labels.get("rate", ""), 0) >= 200
    return min((2 * tier + weight * near) // (2 + weight) + fast, 100)


# --- the check --------------------------------------------------------------------------------------------------------


@given(
    nodes=st.lists(marks, min_size=1, max_size=6),
    kind=st.sampled_from(["training", "batch", "inference", "service", "interactive"]),
    notes=wanted,
    steps=st.lists(
        st.tuples(st.integers(0, 5), st.none() | marks, st.lists(st.integers(0, 5), max_size=3)), max_size=6
    ),
)
def test_it_scores_each_node_as_its_reference_does(
    nodes: list[dict[str, str]], kind: str, notes: dict[str, str], steps: list[tuple[int, Any, list[int]]]
) -> None:
    """A step changes the labels of a node, or not, and then a job with members on some nodes is looked up."""
    ledger = a_ledger([place(f"n{i}", labels) for i, labels in enumerate(nodes)])
    labels, cache, pod = (
        {f"n{i}": each for i, each in enumerate(nodes)},
        ClassCache(PLUGINS),
        worker("w", kind, notes=notes),
    )
    for which, relabelled, at in [(0, None, list[int]()), *steps]:
        name = f"n{which % len(nodes)}"
        if relabelled is not None:
            labels[name] = relabelled
            ledger.upsert_node(place(name, relabelled))
        members = [f"n{i % len(nodes)}" for i in at]
        found = answers(cache, ledger.nodes, pod, members)
        assert found == {each: expected(kind, notes, each, labels, members) for each in labels}


def answers(cache: ClassCache, columns: Any, pod: Pod, members: list[str]) -> dict[str, int | None]:
    placed = tuple(columns.row_of[name] for name in members)
    table = cache.lookup(pod, columns, JobView(1 + len(placed), placed)).table
    (column,) = [score for score in table.scores if score.plugin.name == NAME]
    refusing = [each for each in table.filters if each.plugin.name == NAME and each.bits is not None]
    return {
        name: None if any(each.at(row) for each in refusing) else column.at(row) for name, row in columns.row_of.items()
    }
