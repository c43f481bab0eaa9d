"""Hostile objects by name, and what exactly must come of each, from its bytes to the sentence in the event.

Either refused, with the object and the field in the message, or accepted as Kubernetes accepts it. The rest goes on:
each case ends with a good pod that is placed, or kept out for the reason given.
"""

import json
from typing import Any

import pytest

from kubenexus.framework.verdict import Code
from kubenexus.testing.fuzz.call_counting import counted
from tests.fuzz.path import Json, Loop, a_node, a_pod, dumped

MANY = 10_000
MEGABYTE = 10**6
REQUESTS = "spec.containers[0].resources.requests"
FENCED = "0/1 nodes are available: 1 node(s) ran a pod that could not be read."
SHORT = 2500  # characters: what a message about a megabyte may have


def meta(**parts: Any) -> Json:
    return {"name": "p", "namespace": "ns", "uid": "uid-p", **parts}


def affinity(terms: Any, *, weight: int | None = None) -> Json:
    if weight is None:
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    wishes = [{"weight": weight, "preference": term} for term in terms]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}


def said(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def literal(thing: Json, text: bytes) -> bytes:
    """The object with bare characters where it says "HERE"."""
    return json.dumps(thing).encode().replace(b'"HERE"', text)


# --- refused when they are heard of --------------------------------------------------------------------------------

SHAPES = [
    # what it is, the bytes, where the message begins, whether the node it runs on is known
    ("missing everything", {}, "Pod: metadata.name: missing", False),
    ("no name", {"metadata": {"namespace": "ns"}}, "Pod ns/: metadata.name: missing", False),
    ("no namespace", {"metadata": {"name": "p"}}, "Pod p: metadata.namespace: missing", False),
    ("empty name", {"metadata": meta(name="")}, "Pod ns/: metadata.name: missing", False),
    ("labels as a list", {"metadata": meta(labels=[])}, "Pod ns/p: metadata.labels: ", False),
    ("a label as a number", {"metadata": meta(labels={"a": 1})}, "Pod ns/p: metadata.labels", False),
    ("spec as a text", {"metadata": meta(), "spec": "x"}, "Pod ns/p: spec: ", False),
    ("status as a list", {**a_pod(node="n1"), "status": []}, "Pod ns/p: status: ", True),
    ("containers as an object", a_pod(node="n1", containers={}), "Pod ns/p: spec.containers: ", True),
    ("a container as a text", a_pod(node="n1", containers=["c"]), "Pod ns/p: spec.containers", True),
    ("requests as a list", a_pod(requests=["cpu"], node="n1"), "Pod ns/p: spec.containers", True),
    ("a quantity as a list", a_pod(requests={"cpu": []}, node="n1"), "Pod ns/p: spec.containers", True),
    ("a quantity as a truth", a_pod(requests={"cpu": True}, node="n1"), "Pod ns/p: spec.containers", True),
    ("nodeName as a number", a_pod(nodeName=5), "Pod ns/p: spec.nodeName: ", False),
    ("priority as a text", a_pod(node="n1", priority="high"), "Pod ns/p: spec.priority: ", True),
    ("priority beyond int32", a_pod(node="n1", priority=2**31), "Pod ns/p: spec.priority: ", True),
    ("priority beyond int64", a_pod(node="n1", priority=10**30), "Pod ns/p: spec.priority: ", True),
    ("priority beyond floats", literal(a_pod(node="n1", priority="HERE"), b"1e999"), "Pod ns/p: spec.priority: ", True),
    (
        "a number of 5,000 digits",
        literal(a_pod(node="n1", overhead={"cpu": "HERE"}), b"1" * 5000),
        "Pod ns/p: spec.overhead",
        True,
    ),
    ("NaN without quotes", literal(a_pod(node="n1", priority="HERE"), b"NaN"), "Pod ns/p: ", True),
    ("half a surrogate", literal(a_pod(node="n1", schedulerName="HERE"), rb'"\ud800"'), "Pod ns/p: ", True),
    ("no UTF-8", literal(a_pod(node="n1", schedulerName="HERE"), b'"\xff"'), "Pod ns/p: ", True),
    ("a port beyond int32", a_pod(node="n1", containers=[{"ports": [{"hostPort": 2**31}]}]), "Pod ns/p: spec.", True),
    ("tolerations as a text", a_pod(node="n1", tolerations="all"), "Pod ns/p: spec.tolerations: ", True),
    ("terms as a text", a_pod(affinity=affinity("all")), "Pod ns/p: spec.affinity.nodeAffinity.required", False),
    ("cut off", dumped(a_pod(node="n1"))[:-20], "Pod ns/p: ", False),
    ("nothing", b"", "Pod: ", False),
    ("an array", b"[]", "Pod: ", False),
    ("null", b"null", "Pod: ", False),
    ("two objects", dumped(a_pod()) * 2, "Pod ns/p: ", False),
    (
        "nested without end",
        literal(a_pod(node="n1", priority="HERE"), b"[" * 10**5 + b"]" * 10**5),
        "Pod ns/p: spec.priority: ",
        True,
    ),
    ("a megabyte of name", {"metadata": meta(name="p" * MEGABYTE, labels=5), "spec": {}}, "Pod ns/ppp", False),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "begins", "fences"), [pytest.param(*row[1:], id=row[0]) for row in SHAPES])
def test_what_has_the_wrong_shape_is_refused_by_name_and_field(raw: Any, begins: str, fences: bool) -> None:
    loop = Loop()
    loop.pod(raw)
    assert len(loop.refused) == 1
    assert loop.refused[0].startswith(begins), loop.refused
    assert len(loop.refused[0]) < SHORT
    loop.pod(a_pod("good"))
    assert loop.decide("good").sentence() == (FENCED if fences else "ns/good to n1")


AMOUNTS = [
    # what it is, what the spec says, the field, the problem
    ("NaN", {"requests": {"cpu": "NaN"}}, f"{REQUESTS}[cpu]", "'NaN' is not a quantity"),
    ("Infinity", {"requests": {"memory": "Infinity"}}, f"{REQUESTS}[memory]", "'Infinity' is not a quantity"),
    ("negative", {"requests": {"cpu": "-1"}}, f"{REQUESTS}[cpu]", "must not be negative, but is -1"),
    ("a negative number", {"requests": {"cpu": -1}}, f"{REQUESTS}[cpu]", "must not be negative, but is -1"),
    ("negative beyond int64", {"requests": {"cpu": -(10**30)}}, f"{REQUESTS}[cpu]", "must not be negative"),
    ("empty", {"requests": {"cpu": ""}}, f"{REQUESTS}[cpu]", "'' is not a quantity"),
    ("no such suffix", {"requests": {"memory": "1Zi"}}, f"{REQUESTS}[memory]", "'1Zi' is not a quantity"),
    ("a megabyte of rubbish", {"requests": {"cpu": "z" * MEGABYTE}}, f"{REQUESTS}[cpu]", "is not a quantity"),
    ("rubbish overhead", {"overhead": {"cpu": "x"}}, "spec.overhead[cpu]", "'x' is not a quantity"),
    ("rubbish pod-level", {"resources": {"requests": {"cpu": "x"}}}, "spec.resources.requests[cpu]", "'x' is not"),
    (
        "rubbish init container",
        {"initContainers": [{}, {"resources": {"requests": {"cpu": "x"}}}]},
        "spec.initContainers[1].resources.requests[cpu]",
        "'x' is not",
    ),
    (
        "a resource without a name",
        {"requests": {"cpu": "1", "": "x"}},
        f"{REQUESTS}[]",
        "'x' is not a quantity",
    ),
]


@pytest.mark.parametrize(("spec", "field", "problem"), [pytest.param(*row[1:], id=row[0]) for row in AMOUNTS])
def test_an_amount_that_is_none_keeps_a_pending_pod_waiting_and_says_where_it_is(
    spec: Json, field: str, problem: str
) -> None:
    loop = Loop()
    loop.pod(a_pod(**spec))
    assert loop.refused == [], "it takes no room yet, so nobody had to count it"
    decision = loop.decide()
    assert decision.code is Code.UNRESOLVABLE
    assert decision.sentence().startswith(f"0/1 nodes are available: Pod ns/p: {field}: ")
    assert problem in decision.sentence()
    assert len(decision.sentence()) < SHORT
    loop.pod(a_pod("good"))
    assert loop.decide("good").sentence() == "ns/good to n1"


@pytest.mark.parametrize(("spec", "field", "problem"), [pytest.param(*row[1:], id=row[0]) for row in AMOUNTS])
def test_the_same_in_a_pod_that_runs_closes_its_node_until_it_can_be_read(spec: Json, field: str, problem: str) -> None:
    loop = Loop(a_node("n1"), a_node("n2"))
    loop.pod(a_pod(**spec, node="n1"))
    assert loop.refused[0].startswith(f"Pod ns/p: {field}: ")
    assert problem in loop.refused[0]
    assert len(loop.refused[0]) < SHORT
    for i in range(3):
        loop.pod(a_pod(f"good-{i}"))
        assert loop.decide(f"good-{i}").placements[0].node == "n2"
    loop.pod(a_pod(requests={"cpu": "2"}, node="n1"))
    assert loop.used("cpu") == 2000
    loop.pod(a_pod("more"))
    assert loop.decide("more").placements[0].node == "n1"


# --- accepted, as Kubernetes accepts them --------------------------------------------------------------------------

TOO_LARGE = "0/1 nodes are available: 1 Insufficient cpu."
ACCEPTED = [
    # what it is, what the spec says, the sentence
    ("nothing but a name", {"metadata": meta()}, "ns/p to n1"),
    ("null everywhere", {"metadata": meta(labels=None), "spec": None, "status": None}, "ns/p to n1"),
    ("null in lists", a_pod(tolerations=None, containers=None, nodeSelector=None), "ns/p to n1"),
    ("forty digits", a_pod(requests={"cpu": "9" * 40}), TOO_LARGE),
    ("beyond int64", a_pod(requests={"cpu": "9223372036854775808"}), TOO_LARGE),
    ("a number beyond int64", a_pod(requests={"cpu": 2**63}), TOO_LARGE),
    ("a number beyond uint64", a_pod(requests={"cpu": 2**64}), TOO_LARGE),
    ("a number of thirty digits", a_pod(requests={"cpu": 10**30}), TOO_LARGE),
    ("a float beyond int64", a_pod(requests={"cpu": 1e300}), TOO_LARGE),
    ("an exponent of 400", a_pod(requests={"cpu": "1e400"}), TOO_LARGE),
    ("a megabyte of digits", a_pod(requests={"cpu": "9" * MEGABYTE}), TOO_LARGE),
    ("next to nothing", a_pod(requests={"cpu": "1e-400"}), "ns/p to n1"),
    ("blanks around it", a_pod(requests={"cpu": " 1 "}), "ns/p to n1"),
    ("minus nothing", a_pod(requests={"cpu": "-0"}), "ns/p to n1"),
    ("half a core as a number", a_pod(requests={"cpu": 0.5}), "ns/p to n1"),
    ("a resource nobody offers", a_pod(requests={"a.b/c": 1}), "0/1 nodes are available: 1 Insufficient a.b/c."),
    ("a resource with no valid name", a_pod(requests={"/": 1, "a/b/c": 1, "CPU": 99}), "ns/p to n1"),
    ("a megabyte of label", {**a_pod(), "metadata": meta(labels={"a": "x" * MEGABYTE})}, "ns/p to n1"),
    ("a megabyte of key", {**a_pod(), "metadata": meta(labels={"x" * MEGABYTE: "a"})}, "ns/p to n1"),
    (
        "a megabyte of selector",
        a_pod(nodeSelector={"zone": "x" * MEGABYTE}),
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
    ),
    ("10,000 labels", {**a_pod(), "metadata": meta(labels={f"k{i}": "v" for i in range(MANY)})}, "ns/p to n1"),
    (
        "10,000 terms, the last one fits",
        a_pod(affinity=affinity([*(said(f"k{i}", "Exists") for i in range(MANY)), said("zone", "In", "a")])),
        "ns/p to n1",
    ),
    (
        "10,000 terms, none fits",
        a_pod(affinity=affinity([said(f"k{i}", "Exists") for i in range(MANY)])),
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
    ),
    ("10,000 preferences", a_pod(affinity=affinity([said("zone", "In", "a")] * MANY, weight=100)), "ns/p to n1"),
    ("10,000 values", a_pod(affinity=affinity([said("zone", "In", "a", *map(str, range(MANY)))])), "ns/p to n1"),
    ("10,000 tolerations", a_pod(tolerations=[{"key": f"k{i}"} for i in range(MANY)]), "ns/p to n1"),
    ("10,000 containers", a_pod(containers=[{"resources": {"requests": {"cpu": "1m"}}}] * MANY), TOO_LARGE),
    ("8,000 containers", a_pod(containers=[{"resources": {"requests": {"cpu": "1m"}}}] * 8000), "ns/p to n1"),
    ("10,000 ports", a_pod(containers=[{"ports": [{"hostPort": i + 1} for i in range(MANY)]}]), "ns/p to n1"),
    ("containers of one name", a_pod(containers=[{"name": "c", "resources": {"requests": {"cpu": 3}}}] * 3), TOO_LARGE),
    (
        "an operator nobody knows, required",
        a_pod(affinity=affinity([said("zone", "Matches", "a")])),
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
    ),
    ("another term may fit", a_pod(affinity=affinity([said("zone", "?", "a"), said("zone", "Exists")])), "ns/p to n1"),
    (
        "a term that says nothing",
        a_pod(affinity=affinity([{}])),
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
    ),
    ("a toleration nobody knows", a_pod(tolerations=[{"operator": "Sometimes"}, {"effect": "Never"}]), "ns/p to n1"),
    ("a negative port", a_pod(containers=[{"ports": [{"hostPort": -1}]}]), "ns/p to n1"),
    ("a key said twice", b'{"spec":5,' + dumped(a_pod())[1:], "ns/p to n1"),
    ("a field nobody knows", a_pod(telepathy={"deep": [[[[{}]]]]}), "ns/p to n1"),
    ("an unknown number beyond floats", literal(a_pod(telepathy="HERE"), b"1e999"), "ns/p to n1"),
    ("a phase nobody knows", {**a_pod(), "status": {"phase": "Sleeping"}}, "ns/p to n1"),
    ("a nomination to nowhere", {**a_pod(), "status": {"nominatedNodeName": "nowhere"}}, "ns/p to n1"),
    ("a negative status", {**a_pod(), "status": {"allocatedResources": {"cpu": "-5"}}}, "ns/p to n1"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "sentence"), [pytest.param(*row[1:], id=row[0]) for row in ACCEPTED])
def test_what_kubernetes_accepts_is_accepted(raw: Any, sentence: str) -> None:
    loop = Loop()
    loop.pod(raw)
    assert loop.refused == []
    decision, _ = counted(loop.decide, len(dumped(raw)))
    assert decision.sentence() == sentence
    loop.pod(a_pod("good"))
    assert loop.decide("good").sentence() == "ns/good to n1" or loop.used("cpu") > 7000


@pytest.mark.parametrize(
    ("preference", "problem"),
    [
        pytest.param(
            said("zone", "Matches", "a"), "[0].matchExpressions[0].operator: Unsupported value", id="operator"
        ),
        pytest.param(said("not a key!", "Exists"), "[0].matchExpressions[0].key: Invalid value", id="key"),
        pytest.param(said("zone", "Gt", "many"), "[0].matchExpressions[0].values[0]", id="no number"),
    ],
)
def test_a_preference_that_cannot_be_read_fails_the_attempt_as_upstream_fails_it(
    preference: Json, problem: str
) -> None:
    loop = Loop(a_node("n1"), a_node("n2"))
    loop.pod(a_pod(affinity=affinity([preference], weight=5)))
    decision = loop.decide()
    assert decision.code is Code.ERROR
    assert problem in decision.sentence()
    assert "NodeAffinity" in decision.sentence()
    loop.pod(a_pod("good"))
    assert loop.decide("good").placed


@pytest.mark.parametrize("weight", [-1, -12345, -(2**30) - 12345, -(2**31)])
def test_a_weight_that_the_api_server_lets_in_nowhere_never_makes_a_disliked_node_the_best(weight: int) -> None:
    """Upstream fails it (a normalised score must be 0..100). Failing or disliking is fine, choosing not."""
    loop = Loop(a_node("n1"), a_node("n2"))
    disliked = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    liked = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    wishes = affinity([liked], weight=3)
    listed = wishes["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    listed.append({"weight": weight, "preference": disliked})
    loop.pod(a_pod(affinity=wishes))
    assert [placement.node for placement in loop.decide().placements] in ([], ["n1"])
