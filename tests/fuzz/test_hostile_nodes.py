"""Hostile nodes, by name: refused with the node and the field, or accepted and of no use; the others go on."""

from typing import Any

import pytest

from kubenexus.testing.fuzz.call_counting import counted
from tests.fuzz.path import Json, Loop, a_node, a_pod, dumped

MANY = 10_000
MEGABYTE = 10**6
SHORT = 2500


def status(name: str = "bad", **parts: Any) -> Json:
    return {**a_node(name), "status": {**a_node()["status"], **parts}}


def tainted(name: str, effect: str) -> Json:
    """With ten thousand taints."""
    return {**a_node(name), "spec": {"taints": [{"key": f"k{i}", "effect": effect} for i in range(MANY)]}}


REFUSED = [
    ("missing everything", {}, "Node: metadata.name: missing"),
    ("NaN", a_node("bad", cpu="NaN"), "Node bad: status.allocatable[cpu]: 'NaN' is not a quantity"),
    ("a megabyte of rubbish", a_node("bad", cpu="z" * MEGABYTE), "Node bad: status.allocatable[cpu]: "),
    ("allocatable as a list", {**a_node("bad"), "status": {"allocatable": []}}, "Node bad: status.allocatable: "),
    ("taints as a text", {**a_node("bad"), "spec": {"taints": "x"}}, "Node bad: spec.taints: "),
    ("a cordon as a text", {**a_node("bad"), "spec": {"unschedulable": "yes"}}, "Node bad: spec.unschedulable: "),
    ("an image beyond int64", status(images=[{"names": ["a"], "sizeBytes": 2**63}]), "Node bad: status.images"),
    ("a label as a number", {"metadata": {"name": "bad", "labels": {"a": 1}}}, "Node bad: metadata.labels"),
    ("cut off", dumped(a_node("bad"))[:-9], "Node bad: "),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "begins"), [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_a_node_that_cannot_be_read_is_refused_and_takes_nothing(raw: Any, begins: str) -> None:
    loop = Loop(a_node("good"))
    loop.node(raw)
    assert loop.refused[0].startswith(begins), loop.refused
    assert len(loop.refused[0]) < SHORT
    assert list(loop.ledger.nodes.row_of) == ["good"]
    loop.pod(a_pod())
    assert loop.decide().sentence() == "ns/p to good"


def test_a_known_node_that_becomes_unreadable_stays_as_it_was() -> None:
    loop = Loop(a_node("n1"))
    loop.pod(a_pod("b", node="n1"))
    loop.node(a_node("n1", cpu="NaN"))
    assert [message.split(": ")[:2] for message in loop.refused] == [["Node n1", "status.allocatable[cpu]"]]
    loop.pod(a_pod())
    assert loop.decide().sentence() == "ns/p to n1"
    assert loop.used("cpu") == 2000


NO_USE = [
    # what it is, the node, why no pod goes there
    ("nothing but a name", {"metadata": {"name": "bad"}}, "Insufficient cpu, Insufficient memory, Too many pods"),
    ("negative", a_node("bad", cpu="-8"), "Insufficient cpu"),
    ("a negative number beyond int64", a_node("bad", cpu=-(10**30)), "Insufficient cpu"),
    ("no pods", a_node("bad", pods=0), "Too many pods"),
    ("10,000 taints", tainted("bad", "NoSchedule"), "node(s) had untolerated taint(s)"),
    ("a cordon", {**a_node("bad"), "spec": {"unschedulable": True}}, "node(s) were unschedulable"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "why"), [pytest.param(*row[1:], id=row[0]) for row in NO_USE])
def test_a_node_of_no_use_says_why(raw: Any, why: str) -> None:
    loop = Loop(raw)
    assert loop.refused == []
    loop.pod(a_pod())
    counts = ", ".join(sorted(f"1 {reason}" for reason in why.split(", ")))
    assert loop.decide().sentence() == f"0/1 nodes are available: {counts}."
    loop.node(a_node("good"))
    assert loop.decide().sentence() == "ns/p to good"


USEFUL = [
    ("forty digits", a_node("n1", cpu="9" * 40, memory="9" * 40)),
    ("numbers of thirty digits", a_node("n1", cpu=10**30, memory=10**30)),
    ("a megabyte of label", {**a_node("n1"), "metadata": {"name": "n1", "labels": {"zone": "x" * MEGABYTE}}}),
    ("10,000 labels", {**a_node("n1"), "metadata": {"name": "n1", "labels": {f"k{i}": "v" for i in range(MANY)}}}),
    ("10,000 images", status("n1", images=[{"names": [f"i{i}"]} for i in range(MANY)])),
    ("10,000 soft taints", tainted("n1", "PreferNoSchedule")),
    ("an effect nobody knows", {**a_node("n1"), "spec": {"taints": [{"key": "k", "effect": "Sometimes"}]}}),
    ("null everywhere", {**a_node("n1"), "spec": None}),
]  # fmt: skip


@pytest.mark.parametrize("raw", [pytest.param(row[1], id=row[0]) for row in USEFUL])
def test_a_strange_node_that_can_be_read_is_used(raw: Any) -> None:
    loop = Loop(raw, a_node("n2"))
    assert loop.refused == []
    for i in range(4):
        loop.pod(a_pod(f"p{i}"))
        assert loop.decide(f"p{i}").placed


def test_ten_thousand_tolerations_meet_ten_thousand_taints_in_steps_not_in_squares() -> None:
    taints = [{"key": f"k{i}", "value": "v", "effect": "NoSchedule"} for i in range(MANY)]
    tolerations = [{"key": f"k{i}", "operator": "Exists"} for i in range(MANY)]
    loop = Loop({**a_node("n1"), "spec": {"taints": taints}})
    loop.pod(a_pod(tolerations=tolerations))
    decision, calls = counted(loop.decide, 0)
    assert decision.sentence() == "ns/p to n1"
    assert calls < 40 * MANY


@pytest.mark.parametrize("size", [2**63 - 1, 2**62, -(2**63)])
@pytest.mark.parametrize("nodes", [1, 2])
def test_an_image_of_any_size_is_no_obstacle(size: int, nodes: int) -> None:
    images = [{"names": ["app:1"], "sizeBytes": size}, {"names": ["app:2"], "sizeBytes": size}]
    has = {**a_node("n0"), "status": {**a_node()["status"], "images": images}}
    loop = Loop(*[{**has, "metadata": {"name": f"n{i}"}} for i in range(nodes)], a_node("without"))
    loop.pod(a_pod(containers=[{"image": "app:1"}, {"image": "app:2"}]))
    decision = loop.decide()
    assert decision.placed
    assert {s.plugin: s.normalized for s in decision.placements[0].scores}["ImageLocality"] in range(101)


def test_a_request_beyond_all_numbers_fits_on_no_node_not_even_on_one_that_large() -> None:
    """Both are capped, but a capped request stands for more than any node has."""
    loop = Loop(a_node("n1", cpu="4e18", memory="5e18"))
    loop.pod(a_pod(requests={"memory": "9e18"}))
    assert loop.decide().sentence() == "0/1 nodes are available: 1 Insufficient memory."


def test_an_overfull_node_and_a_request_beyond_int64_do_not_overflow_into_a_fit() -> None:
    loop = Loop(a_node("n1", cpu="1"))
    loop.pod(a_pod("b", requests={"cpu": "9"}, node="n1"))
    loop.pod(a_pod(requests={"cpu": "9e18"}))
    decision = loop.decide()
    assert decision.sentence() == "0/1 nodes are available: 1 Insufficient cpu."
    nearest = decision.diagnosis.nearest
    assert nearest is not None
    assert nearest.shortages[0].lacking == 2**63 - 1 + 8000


def test_what_pods_ask_about_does_not_grow_what_is_kept_of_nodes() -> None:
    """Labels no node has, in ten thousand terms: each later node event would pay for every one of them."""
    loop = Loop()
    terms = [{"matchExpressions": [{"key": f"own-{i}", "operator": "Exists"}]} for i in range(MANY)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    loop.pod(a_pod(affinity={"nodeAffinity": required}))
    loop.decide()
    _, calls = counted(lambda: loop.node({**a_node("n1"), "metadata": {"name": "n1", "labels": {"zone": "b"}}}), 0)
    assert calls < MANY // 2
