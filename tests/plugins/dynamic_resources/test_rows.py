"""What counting and shared searches say about all rows, against a search of its own for each row."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.plugins.dynamic_resources.claim_requests import compile_claims
from kubenexus.plugins.dynamic_resources.outcomes import ClaimOutcomes
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node
from tests.plugins.dynamic_resources.cluster import (
    DRIVER,
    a_cluster,
    a_device,
    a_request,
    a_slice,
    a_spec,
    allocated,
    an_allocated_claim,
)

NODES = 4
FOR_ALL = a_slice("all", [a_device("x"), a_device("y")], pool="net", allNodes=True)
BY_DEVICE = a_slice(
    "some", [a_device("x", nodeName="n1"), a_device("y", allNodes=True)], pool="net", perDeviceNodeSelection=True
)
_MODEL = st.sampled_from("abx")  # devices of model x have no attribute at all: selectors fail
_MACHINE = st.lists(_MODEL, min_size=0, max_size=4)
_MACHINES = st.lists(_MACHINE, min_size=NODES, max_size=NODES)
_STEPS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, 3), st.booleans()), max_size=6)
_REQUESTS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["", "a", "b"])), min_size=1, max_size=3)
_CONSTRAINT = st.sampled_from(["", "", "match model", "distinct model", "match root", "distinct root"])


def machine(node: str, models: list[str]) -> Any:
    roots = [f"{node}-{i // 2}" for i in range(len(models))]  # no two nodes have the same
    devices = [
        a_device(f"d{i}", attributes={} if model == "x" else {"model": model, "uuid": f"{node}-{i}", "root": roots[i]})
        for i, model in enumerate(models)
    ]
    return a_slice(f"s-{node}", devices, node)


def wanted(requests: list[tuple[int, str]], constraint: str) -> Any:
    made = [
        a_request(f"r{i}", *([f'device.attributes["{DRIVER}"].model == "{model}"'] if model else []), count=number)
        for i, (number, model) in enumerate(requests)
    ]
    kind, _, name = constraint.partition(" ")
    return a_spec(*made, constraints=[{f"{kind}Attribute": f"{DRIVER}/{name}"}] if constraint else [])


def refused(outcomes: ClaimOutcomes, ledger: Ledger) -> dict[str, str]:
    """The nodes without devices for the claims, and whether that is an error."""
    columns = ledger.nodes
    rows = np.flatnonzero(columns.alive[: columns.size])
    found = {}
    for positions, outcome in outcomes.refusals(rows, columns):
        for row in rows[positions].tolist():
            assert columns.names[row] not in found
            found[columns.names[row]] = "error" if outcome.error else "none"
    for row in rows.tolist():
        one = outcomes.refusal(row, columns)
        assert (one is None) == (columns.names[row] not in found)
    return found


def expected(ledger: Ledger, spec: Any) -> dict[str, str]:
    answers = {name: allocated(ledger, spec, node=name) for name in ledger.nodes.row_of}
    return {name: "error" if said else "none" for name, said in answers.items() if isinstance(said, str)}


@settings(max_examples=2 * settings().max_examples)
@given(machines=_MACHINES, requests=_REQUESTS, constraint=_CONSTRAINT, steps=_STEPS)
def test_all_rows_are_as_each_alone(
    machines: list[list[str]], requests: list[tuple[int, str]], constraint: str, steps: list[tuple[int, int, bool]]
) -> None:
    nodes: dict[str, dict[str, str]] = {f"n{i}": {} for i in range(NODES)}
    ledger = a_cluster(*(machine(f"n{i}", models) for i, models in enumerate(machines)), nodes=nodes)
    spec = wanted(requests, constraint)
    outcomes = ClaimOutcomes(compile_claims([("a/c", spec)], ledger.nodes.claims.classes))
    assert refused(outcomes, ledger) == expected(ledger, spec)
    for node, device, release in steps:
        if release:
            ledger.remove_resource_claim(f"a/x{node}-{device}")
        else:
            ledger.upsert_resource_claim(an_allocated_claim(f"x{node}-{device}", f"d{device}", pool=f"n{node}"))
        assert refused(outcomes, ledger) == expected(ledger, spec)


@pytest.mark.parametrize(
    ("cards", "refusing"),
    [
        pytest.param({"n0": "00", "n1": "11"}, [], id="a network card beside each GPU"),
        pytest.param({"n0": "00", "n1": "12"}, ["n1"], id="cards on other roots on one node"),
    ],
)
def test_constraints_compare_devices_of_several_pools(cards: dict[str, str], refusing: list[str]) -> None:
    things = []
    for node, roots in cards.items():
        for pool, root in zip(("gpu", "nic"), roots, strict=True):
            device = a_device("d", attributes={"root": f"{node}-{root}", "kind": pool})
            things.append(a_slice(f"{node}-{pool}", [device], node, pool=f"{node}-{pool}"))
    ledger = a_cluster(*things, nodes={name: {} for name in cards})
    requests = [a_request(kind, f'device.attributes["{DRIVER}"].kind == "{kind}"') for kind in ("gpu", "nic")]
    spec = a_spec(*requests, constraints=[{"matchAttribute": f"{DRIVER}/root"}])
    outcomes = ClaimOutcomes(compile_claims([("a/c", spec)], ledger.nodes.claims.classes))
    assert refused(outcomes, ledger) == dict.fromkeys(refusing, "none") == expected(ledger, spec)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param(lambda ledger: ledger.upsert_resource_slice(machine("n0", [])), [], id="a driver takes them away"),
        pytest.param(lambda ledger: ledger.remove_node("n0"), [], id="the node leaves"),
        pytest.param(
            lambda ledger: ledger.upsert_resource_slice(machine("n1", ["a", "a"])), ["n0", "n1"], id="another has them"
        ),
        pytest.param(lambda ledger: ledger.upsert_resource_slice(FOR_ALL), ["n0", "n1"], id="devices for all nodes"),
        pytest.param(
            lambda ledger: ledger.upsert_resource_slice(BY_DEVICE), ["n0", "n1"], id="devices with nodes of their own"
        ),
    ],
)
def test_rows_follow_the_slices(change: Any, left: list[str]) -> None:
    ledger = a_cluster(machine("n0", ["a", "a"]), machine("n1", []), nodes={"n0": {}, "n1": {}})
    outcomes = ClaimOutcomes(compile_claims([("a/c", wanted([(2, "")], ""))], ledger.nodes.claims.classes))
    assert refused(outcomes, ledger) == {"n1": "none"}
    change(ledger)
    assert [name for name in sorted(ledger.nodes.row_of) if name not in refused(outcomes, ledger)] == left


def test_devices_with_a_selector_of_their_own_follow_the_labels_of_the_node() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    devices = [a_device("x", nodeSelector={"nodeSelectorTerms": [term]}), a_device("y", nodeName="n0")]
    ledger = a_cluster(a_slice("some", devices, perDeviceNodeSelection=True), nodes={"n0": {"zone": "a"}})
    spec = wanted([(2, "")], "")
    outcomes = ClaimOutcomes(compile_claims([("a/c", spec)], ledger.nodes.claims.classes))
    assert refused(outcomes, ledger) == {}
    ledger.upsert_node(a_node("n0", labels={"zone": "b"}))
    assert refused(outcomes, ledger) == {"n0": "none"}
