"""How many more pods of a class each node can take: each rule of the lineup lowers it, none raises it."""

from collections.abc import Iterable

import numpy as np
import pytest

from kubenexus.api.core import Node, Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.pod_signature import PodSigner
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.plugins import profile_plugins
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_device_class, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.framework.rules import Rule, lineup_with

PLENTY = 10**6


def room(
    pod: Pod, nodes: Iterable[Node], running: Iterable[Pod] = (), rules: ProfilePlugins | None = None
) -> dict[str, int]:
    """As the planner asks: every rule in turn lowers the same column."""
    rules = rules or profile_plugins()
    ledger = a_ledger(nodes, running, [a_device_class("class", resource="example.com/claimed")])
    signer = PodSigner(rules.reads)
    pod_class = PodClass(signer.sign(pod), signer.class_pod_of(pod))
    column: IntColumn = np.full(ledger.nodes.size, PLENTY, np.int64)
    for rule in rules.capacity:
        rule.capacity(pod_class, Nodes(ledger.nodes), column)
    return {name: int(column[row]) for name, row in ledger.nodes.row_of.items()}


@pytest.mark.parametrize(
    ("pod", "nodes", "running", "expected"),
    [
        pytest.param(
            a_pod("a", cpu=3), [a_node("n1", cpu=8)], [], 2, id="how often the request goes into what is free"
        ),
        pytest.param(
            a_pod("a", cpu=3), [a_node("n1", cpu=8)], [a_pod("b", cpu=4, node="n1")], 1, id="what runs counts"
        ),
        pytest.param(a_pod("a", cpu=9), [a_node("n1", cpu=8)], [], 0, id="too large"),
        pytest.param(a_pod("a"), [a_node("n1", pods=3)], [], 3, id="asks for nothing: as many as pods may run"),
        pytest.param(a_pod("a", cpu=1), [a_node("n1", pods=3)], [], 3, id="the scarcest counts"),
        pytest.param(a_pod("a", cpu=1), [a_node("n1", cpu=2)], [a_pod("b", cpu=5, node="n1")], 0, id="overfull is 0"),
        pytest.param(a_pod("a", ports=[80]), [a_node("n1")], [], 1, id="its port is free once"),
        pytest.param(a_pod("a", cpu=1, gpu=2), [a_node("n1", gpu=7)], [], 3, id="accelerators"),
        pytest.param(a_pod("a", cpu="1n"), [a_node("n1", pods=4)], [], 4, id="next to nothing is rounded up"),
        pytest.param(
            a_pod("a", cpu=4, requests={"example.com/claimed": 1}),
            [a_node("n1", cpu=8)],
            [],
            2,
            id="claims are not ours",
        ),
    ],
)
def test_room_on_one_node(pod: Pod, nodes: list[Node], running: list[Pod], expected: int) -> None:
    assert room(pod, nodes, running) == {"n1": expected}


def test_room_on_every_node_at_once() -> None:
    nodes = [a_node("small", cpu=2), a_node("large", cpu=16), a_node("none", cpu=0)]
    assert room(a_pod("a", cpu=2), nodes) == {"small": 1, "large": 8, "none": 0}


class AtMostTwo(Rule):
    name = "AtMostTwo"

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        np.minimum(capacity, np.maximum(2 - nodes.used("pods"), 0), out=capacity)


def test_a_users_rule_has_its_say_in_the_lineup() -> None:
    rules = lineup_with(AtMostTwo)
    assert [rule.name for rule in rules.capacity][-1] == "AtMostTwo"
    nodes = [a_node("n1", cpu=8), a_node("n2", cpu=8), a_node("n3", cpu=1)]
    running = [a_pod("b", node="n2")]
    assert room(a_pod("a", cpu=1), nodes, running, rules) == {"n1": 2, "n2": 1, "n3": 1}


def test_the_built_in_rules_that_know_of_room() -> None:
    assert {"NodePorts", "NodeResourcesFit"} <= {rule.name for rule in profile_plugins().capacity}
