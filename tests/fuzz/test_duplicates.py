"""The same name twice: an update, another life under the same name, or one object said to be in two places."""

from typing import Any

import pytest

from kubenexus.state.digest import digest
from tests.fuzz.path import Json, Loop, a_node, a_pod


def life(number: int, pod: Json) -> Json:
    return {**pod, "metadata": {**pod["metadata"], "uid": f"life-{number}"}}


ON_N1, ON_N2 = a_pod("p", node="n1"), a_pod("p", node="n2")

CASES = [
    # what happens, the events, cpu on n1 and on n2 at the end
    ("the same again", [ON_N1, ON_N1, ON_N1], (1000, 0)),
    ("more than before", [ON_N1, a_pod("p", requests={"cpu": "3"}, node="n1")], (3000, 0)),
    ("less than before", [a_pod("p", requests={"cpu": "3"}, node="n1"), ON_N1], (1000, 0)),
    ("another life, elsewhere", [life(1, ON_N1), life(2, ON_N2)], (0, 1000)),
    ("another life, in the same place", [life(1, ON_N1), life(2, ON_N1)], (1000, 0)),
    ("another life, still waiting", [life(1, ON_N1), life(2, a_pod("p"))], (0, 0)),
    ("another life, unreadable", [life(1, ON_N1), life(2, a_pod("p", requests={"cpu": "x"}, node="n2"))], (0, 0)),
    ("moved, which cannot be", [ON_N1, ON_N2], (0, 1000)),
    ("finished and seen again", [ON_N1, {**ON_N1, "status": {"phase": "Succeeded"}}, ON_N1], (1000, 0)),
    ("on a node nobody knows", [a_pod("p", node="nowhere")], (0, 0)),
]


@pytest.mark.parametrize(("events", "cpu"), [pytest.param(*row[1:], id=row[0]) for row in CASES])
def test_a_pod_counts_once_where_it_was_seen_last(events: list[Json], cpu: tuple[int, int]) -> None:
    loop = Loop(a_node("n1"), a_node("n2"))
    for event in events:
        loop.pod(event)
    assert (loop.used("cpu", "n1"), loop.used("cpu", "n2")) == cpu
    loop.ledger.remove_pod("ns/p")
    assert (loop.used("cpu", "n1"), loop.used("cpu", "n2")) == (0, 0)


def test_a_pod_on_a_node_nobody_knows_counts_there_as_soon_as_it_is_known() -> None:
    loop = Loop(a_node("n1"))
    loop.pod(a_pod("early", requests={"cpu": "8"}, node="late"))
    loop.node(a_node("late"))
    loop.pod(a_pod("p"))
    assert loop.used("cpu", "late") == 8000
    assert loop.decide().sentence() == "ns/p to n1"


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(a_node("n1"), id="the same again"),
        pytest.param({**a_node("n1"), "metadata": {"name": "n1", "uid": "another"}}, id="under another UID"),
        pytest.param(a_node("n1", cpu="2"), id="smaller than what runs there"),
    ],
)
def test_a_node_of_the_same_name_is_the_same_row_and_keeps_its_pods(again: Any) -> None:
    loop = Loop(a_node("n1"))
    loop.pod(a_pod("b", requests={"cpu": "7"}, node="n1"))
    loop.node(again)
    assert loop.ledger.nodes.count == 1
    assert loop.used("cpu") == 7000
    loop.pod(a_pod("p", requests={"cpu": "2"}))
    assert loop.decide().sentence() == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_list_that_says_a_pod_twice_counts_it_once() -> None:
    loop = Loop(a_node("n1"), a_node("n2"))
    loop.pods(ON_N1, ON_N1, a_pod("q", node="n1"), ON_N2)
    assert (loop.used("cpu", "n1"), loop.used("cpu", "n2")) == (1000, 1000)


def test_names_that_only_look_alike_are_not_the_same() -> None:
    """Blanks, case and the shape of characters tell names apart, as in Kubernetes."""
    loop = Loop(a_node("n1"))
    names = ["p", "P", "p ", "p\u0000", "\u0440", "p\u200b"]
    for name in names:
        loop.pod(a_pod(name, node="n1"))
    assert loop.used("pods") == len(names)


def test_every_order_of_the_last_words_comes_to_the_same() -> None:
    last = [ON_N2, a_pod("q", node="n1"), a_pod("r", node="n1", requests={"cpu": 10**30})]
    digests = set()
    for turn in range(3):
        loop = Loop(a_node("n1"), a_node("n2"))
        for event in (ON_N1, a_pod("q", node="n2"), *last[turn:], *last[:turn]):
            loop.pod(event)
        digests.add(digest(loop.ledger))
    assert len(digests) == 1
