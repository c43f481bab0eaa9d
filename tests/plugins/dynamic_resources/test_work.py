"""Claims that tell all nodes apart: an attempt looks at some nodes, and the next one goes on from there."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod, PodResourceClaim
from kubenexus.api.devices.resource_claim import ResourceClaim
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.plugins.dynamic_resources import claim_requests, work
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_pod
from tests.plugins.dynamic_resources.cluster import DRIVER, a_cluster, a_device, a_request, a_slice, a_spec, devices

NODES = 40
UUID = f'device.attributes["{DRIVER}"].uuid'
LATER = "the devices have not been looked at yet"


def machines() -> Ledger:
    """Nodes with two devices each, no two of which are alike."""
    slices = []
    for i in range(NODES):
        cards = [a_device(f"d{j}", attributes={"uuid": f"{i}-{j}", "root": f"{i}-{j}"}) for j in range(2)]
        slices.append(a_slice(f"s{i}", cards, f"n{i}"))
    return a_cluster(*slices, nodes={f"n{i}": {} for i in range(NODES)})


def a_claiming_pod(ledger: Ledger, spec: Any, name: str = "p") -> Pod:
    pod = a_pod(name)
    meta = {"name": name, "namespace": "default", "uid": f"c-{name}"}
    ledger.upsert_resource_claim(replace(from_data({"metadata": meta}, ResourceClaim), spec=spec))
    claims = [PodResourceClaim(name="c", resource_claim_name=name)]
    return replace(pod, spec=replace(pod.spec, resource_claims=claims))


def attempts(ledger: Ledger, *pods: Pod, most: int = 20) -> list[Decision]:
    """The decisions about a job until one is no longer repeated soon."""
    planner, found = Planner(profile_plugins(default_profile())), list[Decision]()
    job = Job.of(pods[0]) if len(pods) == 1 else Job("gang", pods, minimum=len(pods))
    while len(found) < most and (not found or found[-1].code is Code.ERROR):
        found.append(planner.decide(job, ledger.snapshot(), 0.0))
    return found


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_STEPS", 1000)


def test_a_device_by_its_uuid_is_found_in_a_few_attempts() -> None:
    ledger = machines()
    found = attempts(ledger, a_claiming_pod(ledger, a_spec(a_request("r", f'{UUID} == "{NODES - 1}-1"'))))
    assert found[-1].placements[0].node == f"n{NODES - 1}"
    assert 2 < len(found) < 10
    assert all(LATER in each.error for each in found[:-1])


def test_where_a_node_fits_the_others_need_not_be_looked_at() -> None:
    ledger = machines()
    (only,) = attempts(ledger, a_claiming_pod(ledger, a_spec(a_request("r", f'{UUID} != "x"'))))
    assert only.placed


def test_a_pod_that_fits_nowhere_waits_when_all_nodes_were_looked_at() -> None:
    ledger = machines()
    found = attempts(ledger, a_claiming_pod(ledger, a_spec(a_request("r", f'{UUID} == "none"'))))
    assert found[-1].code is Code.UNSCHEDULABLE
    assert found[-1].diagnosis.counts == (("cannot allocate all claims", NODES),)
    assert len(found) > 2


def test_a_gang_goes_on_too() -> None:
    ledger = machines()
    last = a_spec(a_request("r", f'{UUID}.startsWith("{NODES - 1}-")'))
    found = attempts(ledger, *(a_claiming_pod(ledger, last, f"p{i}") for i in range(2)))
    assert {each.node for each in found[-1].placements} == {f"n{NODES - 1}"}
    assert len(found) > 2


@pytest.mark.parametrize("kind", ["match", "distinct"])
def test_constraints_alone_do_not_tell_nodes_apart(kind: str) -> None:
    ledger = machines()
    spec = a_spec(a_request("r", count=2), constraints=[{f"{kind}Attribute": f"{DRIVER}/root"}])
    (only,) = attempts(ledger, a_claiming_pod(ledger, spec))
    assert only.placed == (kind == "distinct")


def test_an_error_on_one_node_ends_the_attempt_before_all_are_looked_at() -> None:
    ledger = machines()
    (first, *_) = attempts(ledger, a_claiming_pod(ledger, a_spec(a_request("r", f"{UUID}.size() > none"))), most=1)
    assert first.code is Code.ERROR
    assert LATER not in first.error


def hard_searches(nodes: int) -> tuple[Ledger, Pod]:
    """Nodes with five devices, no two alike, and a claim for six whose search takes 3,300 steps on each node."""
    slices = []
    for i in range(nodes):
        cards = [a_device(f"d{j}", attributes={"uuid": f"{i}-{j}", "root": f"{i}-{j}"}) for j in range(5)]
        slices.append(a_slice(f"s{i}", cards, f"n{i}"))
    ledger = a_cluster(*slices, nodes={f"n{i}": {} for i in range(nodes)})
    requests = [a_request(f"r{i}", f'{UUID} != "x"') for i in range(6)]
    distinct = [{"distinctAttribute": f"{DRIVER}/root"}]
    return ledger, a_claiming_pod(ledger, a_spec(*requests, constraints=distinct))


def test_an_attempt_gives_up_a_search_that_its_steps_do_not_last_for_and_the_next_begins_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most, spent = 6000, list[int]()  # enough for one search, too few for two
    monkeypatch.setattr(work, "MAX_STEPS", most)
    monkeypatch.setattr(work.WorkMeter, "add", lambda _, steps: spent.append(steps))
    ledger, pod = hard_searches(4)
    found, totals = list[Decision](), list[int]()
    planner = Planner(profile_plugins(default_profile()))
    while not found or found[-1].code is Code.ERROR:
        found.append(planner.decide(Job.of(pod), ledger.snapshot(), 0.0))
        totals.append(sum(spent))
        spent.clear()
    assert [each.code for each in found] == [Code.ERROR] * 3 + [Code.UNSCHEDULABLE]
    assert found[-1].diagnosis.counts == (("cannot allocate all claims", 4),)
    assert max(totals) < most * 1.1, "without the limit the second search would be completed: 6,700 steps"


def test_rows_that_changed_leave_fewer_steps_but_at_least_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_STEPS", 1000)
    assert [work.Work(spent=steps).left for steps in (0, 200, 500, 10**6)] == [1000, 800, 500, 500]


def test_too_many_expressions_are_not_compiled() -> None:
    ledger = machines()
    text = "x" * (claim_requests.MAX_EXPRESSIONS // 16)
    requests = [a_request(f"r{i}", f'{UUID} != "{i}{text}"') for i in range(16)]
    assert "16 selectors with" in str(devices(ledger, a_spec(*requests), node="n0"))
    assert devices(ledger, a_spec(requests[0]), node="n0") == [["d0"]]


def test_a_device_with_an_expensive_selector_costs_its_steps() -> None:
    nested = f'["1", "2", "3"].all(a, ["1", "2", "3"].all(b, {UUID}.contains(a + b) || true))'
    ledger = machines()
    (only,) = attempts(ledger, a_claiming_pod(ledger, a_spec(a_request("r", nested))), most=1)
    assert only.code is Code.ERROR
