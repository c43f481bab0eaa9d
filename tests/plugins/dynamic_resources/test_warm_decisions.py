"""What a decision costs once the class of a pod with a claim is known, in calls, and that it stays right."""

import functools
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod, PodResourceClaim, PodResourceClaimStatus, PodStatus
from kubenexus.api.devices.resource_claim import ResourceClaim
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.plugins.dynamic_resources.pod_claims import pod_claims
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_pod
from kubenexus.testing.fuzz.call_counting import counted
from tests.plugins.dynamic_resources.cluster import (
    DRIVER,
    a_class,
    a_cluster,
    a_device,
    a_request,
    a_slice,
    a_spec,
    an_allocated_claim,
)

DEVICES, NODES, FULL = 4, 3, "cannot allocate all claims"
TEMPLATE = a_pod("template", cpu="100m")


def machines(devices: int = DEVICES) -> Ledger:
    slices = [a_slice(f"s{i}", [a_device(f"d{j}") for j in range(devices)], f"n{i}") for i in range(NODES)]
    return a_cluster(*slices, nodes={f"n{i}": {} for i in range(NODES)})


def a_member(ledger: Ledger, name: str, spec: Any) -> Pod:
    """A pod of one template, with the claim that the claim controller made for it."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"u-{name}", "controller": True}
    meta = {"name": f"c-{name}", "namespace": "default", "uid": f"c-{name}", "ownerReferences": [owner]}
    ledger.upsert_resource_claim(replace(from_data({"metadata": meta}, ResourceClaim), spec=spec))
    claims = [PodResourceClaim(name="gpu", resource_claim_template_name="gpu")]
    known = [PodResourceClaimStatus(name="gpu", resource_claim_name=f"c-{name}")]
    made = plain(name)
    return replace(
        made, spec=replace(made.spec, resource_claims=claims), status=PodStatus(resource_claim_statuses=known)
    )


def plain(name: str) -> Pod:
    return replace(TEMPLATE, metadata=replace(TEMPLATE.metadata, name=name, uid=f"u-{name}"))


def decisions(ledger: Ledger, pods: Iterator[Pod]) -> list[tuple[Decision, int]]:
    """Places pods one after the other. Returns the decisions, with the calls that each took."""
    planner, found = Planner(profile_plugins(default_profile())), []
    for pod in pods:
        job = Job.of(pod)
        decision, calls = counted(functools.partial(planner.decide, job, ledger.snapshot(), 0.0), 0)
        commit(decision, job, ledger, 0.0)
        found.append((decision, calls))
    return found


def test_a_claim_takes_at_most_two_and_a_half_times_the_calls_of_a_pod_without_one() -> None:
    few = a_cluster(nodes={f"n{i}": {} for i in range(NODES)})
    cheapest = min(calls for _, calls in decisions(few, (plain(f"p{i}") for i in range(6))))
    ledger, spec = machines(devices=40), a_spec(a_request())
    claimed = decisions(ledger, (a_member(ledger, f"p{i}", spec) for i in range(30)))
    assert all(decision.placed for decision, _ in claimed)
    assert min(calls for _, calls in claimed) <= 2.5 * cheapest


def test_pods_of_a_template_share_what_was_read_of_their_claims() -> None:
    ledger, spec = machines(), a_spec(a_request())
    store = ledger.nodes.claims
    one, other = (pod_claims(a_member(ledger, name, spec), store) for name in ("a", "b"))
    assert one is other
    assert one is not None
    assert one.any_wanted


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            lambda ledger: ledger.remove_device_class("gpu"),
            "request r: device class gpu does not exist",
            id="the class is gone",
        ),
        pytest.param(
            lambda ledger: ledger.remove_resource_claim("default/c-a"),
            'could not find ResourceClaim "default/c-a"',
            id="the claim is gone",
        ),
    ],
)
def test_what_is_shared_ends_with_what_it_was_read_from(change: Any, problem: str) -> None:
    ledger = machines()
    pod = a_member(ledger, "a", a_spec(a_request()))
    assert pod_claims(pod, ledger.nodes.claims)
    change(ledger)
    found = pod_claims(pod, ledger.nodes.claims)
    assert found is not None
    assert found.problem == problem


def test_the_parameters_of_a_class_are_those_of_now() -> None:
    ledger, spec = machines(), a_spec(a_request())
    planner = Planner(profile_plugins(default_profile()))

    def given(name: str) -> Any:
        job = Job.of(a_member(ledger, name, spec))
        decision = planner.decide(job, ledger.snapshot(), 0.0)
        commit(decision, job, ledger, 0.0)
        (claim,) = decision.placements[0].assignment.claims
        return [each.opaque.driver for each in claim.allocation.devices.config if each.opaque]

    assert given("a") == []
    ledger.upsert_device_class(a_class("gpu", config=[{"opaque": {"driver": "x", "parameters": {}}}]))
    assert given("b") == ["x"]


def test_nodes_fill_up_and_each_device_is_given_once() -> None:
    ledger, spec = machines(), a_spec(a_request())
    found = decisions(ledger, (a_member(ledger, f"p{i}", spec) for i in range(NODES * DEVICES + 1)))
    *placed, (last, _) = found
    given = [(d.placements[0].node, d.placements[0].assignment.claims[0].allocation) for d, _ in placed]
    devices = {(node, allocation.devices.results[0].device) for node, allocation in given}
    assert len(devices) == NODES * DEVICES
    assert last.sentence() == f"0/{NODES} nodes are available: {NODES} {FULL}."
    for i, (decision, _) in enumerate(placed):  # the reasons against the other nodes are counted when a node fills up
        full = sum([node for node, _ in given[:i]].count(f"n{n}") == DEVICES for n in range(NODES))
        assert dict(decision.diagnosis.counts).get(FULL, 0) == full


def test_the_status_with_the_devices_that_a_pod_brought_changes_no_row() -> None:
    ledger, spec = machines(), a_spec(a_request())
    pod = a_member(ledger, "a", spec)
    ((decision, _),) = decisions(ledger, iter([pod]))
    store, allocation = ledger.nodes.claims, decision.placements[0].assignment.claims[0].allocation
    before = store.mark
    claim = store.claims["default/c-a"].claim
    written = replace(claim, status=replace(claim.status, allocation=allocation))
    ledger.upsert_resource_claim(written)
    assert store.mark == before
    ledger.forget(pod.key)  # the pod is gone, its claim still has the device
    assert store.allocated.is_held((DRIVER, decision.placements[0].node, "d0"))
    ledger.upsert_resource_claim(claim)
    assert store.mark > before
    assert not store.allocated.is_held((DRIVER, decision.placements[0].node, "d0"))


def test_another_device_than_the_pod_brought_counts_instead() -> None:
    ledger, spec = machines(), a_spec(a_request())
    ((decision, _),) = decisions(ledger, iter([a_member(ledger, "a", spec)]))
    store, node = ledger.nodes.claims, decision.placements[0].node
    claim = store.claims["default/c-a"].claim
    other = an_allocated_claim("c-a", "d3", pool=node).status
    ledger.upsert_resource_claim(replace(claim, status=other))
    assert store.allocated.in_pool((DRIVER, node)) == {"d3"}
    ledger.upsert_resource_claim(claim)
    assert store.allocated.in_pool((DRIVER, node)) == {"d0"}
