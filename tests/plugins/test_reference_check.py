"""The helper for references finds what it is for, and its builders say what they were told."""

from typing import Any, ClassVar

import numpy as np
import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.verdict import SKIP, Code, Reason
from kubenexus.testing.builders import a_node, a_pod, a_taint, a_term, a_toleration
from kubenexus.testing.harness import CheckedCluster, NodeInfo, run
from kubenexus.testing.reference_check import assert_capacity, assert_matches_reference

NODES = [a_node("n1", cpu=2), a_node("n2", cpu=4), a_node("n3", cpu=8)]
POD = a_pod("p", cpu=1)


class Small:
    """Refuses nodes with fewer cores than `least`; scores cores; room is four less than cores."""

    name: ClassVar[str] = "Small"
    reads: ClassVar[tuple[str, ...]] = ("spec.containers",)
    depends, normalize = Depends.NODE, AS_IS
    TOO_SMALL = Reason("node(s) were too small", Code.UNRESOLVABLE)

    def __init__(self, least: int = 4, wrong: str = "") -> None:
        self.least, self.wrong = 1000 * least, wrong

    def filter(self, pod: Any, nodes: Any, verdict: Any) -> None:
        cores = nodes.alloc("cpu")
        if self.wrong == "sees other rows":
            cores = np.broadcast_to(cores.max(), cores.shape)
        verdict.reject(cores < self.least, self.TOO_SMALL)

    def score(self, pod: Any, nodes: Any, job: Any) -> Any:
        if self.wrong == "skips":
            return SKIP
        return nodes.alloc("cpu") / 1000 + (0.9 if self.wrong != "is off by one" else 1.0)

    def capacity(self, pod: Any, nodes: Any, room: Any) -> None:
        free = (nodes.alloc("cpu") - nodes.used("cpu")) // 1000
        np.minimum(room, free + (self.wrong == "has too much room"), out=room)


class SmallReference:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Any:
        return [("node(s) were too small", Code.UNRESOLVABLE)] if int(info.node.status.allocatable["cpu"]) < 4 else []

    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        return int(info.node.status.allocatable["cpu"])


class ReasonReference:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reason | None:
        return Small.TOO_SMALL if info.node.metadata.name == "n1" else None


def test_a_rule_that_agrees_with_its_reference_passes_and_floats_are_truncated() -> None:
    cluster = CheckedCluster.of(NODES)
    assert_matches_reference(Small(), SmallReference(), POD, cluster)
    assert_matches_reference(Small(), ReasonReference(), POD, cluster)
    assert_matches_reference(Small(), Small(), POD, cluster)  # a reference that is a plugin of its own


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        pytest.param(
            Small(least=5), r"refusals on all rows:\n  n2: .*too small.*its reference says", id="another reason"
        ),
        pytest.param(Small(wrong="is off by one"), r"scores on all rows:\n  n1: 3, its reference says 2", id="a score"),
        pytest.param(Small(wrong="skips"), r"\(fails, skips\) is \(False, True\)", id="not concerned"),
        pytest.param(Small(wrong="sees other rows"), "refusals on", id="a row's answer depends on other rows"),
    ],
)
def test_a_rule_that_differs_from_its_reference_is_told_where(rule: Small, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_matches_reference(rule, SmallReference(), POD, CheckedCluster.of(NODES))


def test_room_that_is_not_there_is_found() -> None:
    class Full(Small):
        def filter(self, pod: Any, nodes: Any, verdict: Any) -> None:
            verdict.reject(nodes.alloc("cpu") - nodes.used("cpu") < 1000, self.TOO_SMALL)

    ledger = CheckedCluster.of(NODES).ledger
    assert_capacity(Full(), POD, ledger)
    with pytest.raises(AssertionError, match="room on n1 is 3, but 2 pods go there"):
        assert_capacity(Full(wrong="has too much room"), POD, ledger)


def test_builders_read_what_kubectl_would() -> None:
    taint, bare = a_taint("gpu=yes:NoSchedule"), a_taint("gpu:NoExecute")
    assert (taint.key, taint.value, taint.effect) == ("gpu", "yes", "NoSchedule")
    assert (bare.key, bare.value, bare.effect) == ("gpu", "", "NoExecute")
    everything, one = a_toleration("*"), a_toleration("gpu=yes:NoSchedule")
    assert (everything.key, everything.operator) == ("", "Exists")
    assert (one.operator, one.value, one.effect) == ("Equal", "yes", "NoSchedule")
    term = a_term("zone In a b and metadata.name In n1 and cores Gt 4")
    assert [(e.key, e.operator, e.values) for e in term.match_expressions] == [
        ("zone", "In", ["a", "b"]),
        ("cores", "Gt", ["4"]),
    ]
    assert [f.values for f in term.match_fields] == [["n1"]]


def test_a_pod_asks_for_nothing_unless_told_to() -> None:
    pod = a_pod("p")
    assert pod.spec.containers[0].resources.requests is None
    assert (pod.key, pod.metadata.uid) == ("default/p", "uid of default/p")


def test_a_whole_scheduler_is_one_line() -> None:
    done = run(
        nodes=[a_node("n1", cpu=2, zone="a"), a_node("n2", gpu=1, taints=["gpu:NoSchedule"])],
        pods=[
            a_pod("runs", cpu=1, node="n1"),
            a_pod("web", cpu=1),
            a_pod("train", gpu=1, tolerates=["gpu"], namespace="ml"),
            a_pod("late", cpu=1),
        ],
    )
    assert done.placements == {"web": "n1", "ml/train": "n2"}
    assert done.refusals == {"late": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."}
