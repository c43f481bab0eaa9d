"""Gangs with device claims that fit only if the claims of several members are allocated together."""

import pytest
from msgspec.structs import replace

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod, PodResourceClaim
from kubenexus.api.devices.resource_claim import DeviceClass, ResourceClaim
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.claim_puzzles import (
    DRIVER,
    Device,
    Member,
    Puzzle,
    claim_of,
    class_of_all,
    puzzles,
    slice_of,
)
from kubenexus.testing.harness import a_ledger
from tests.rounds import rounds

PLUGINS = profile_plugins(default_profile())


def posed(puzzle: Puzzle) -> tuple[Ledger, Job]:
    """The cluster of a puzzle, and its gang."""
    ledger = a_ledger([a_node(f"n{i}", cpu=64) for i in range(len(puzzle.nodes))])
    ledger.upsert_device_class(from_data(class_of_all(), DeviceClass))
    for i, devices in enumerate(puzzle.nodes):
        ledger.upsert_resource_slice(from_data(slice_of(f"n{i}", devices), ResourceSlice))
    pods = []
    for i, member in enumerate(puzzle.members):
        made = claim_of(f"c{i}", member)
        made["metadata"] |= {"namespace": "default", "uid": f"claim-{i}"}
        ledger.upsert_resource_claim(from_data(made, ResourceClaim))
        pods.append(_claiming(a_pod(f"m{i}", cpu=1), f"c{i}"))
    return ledger, Job("default/gang", tuple(pods), len(pods))


def _claiming(pod: Pod, claim: str) -> Pod:
    wanted = [PodResourceClaim(name="gpu", resource_claim_name=claim)]
    return replace(pod, spec=replace(pod.spec, resource_claims=wanted))


def decided(puzzle: Puzzle) -> Decision:
    ledger, job = posed(puzzle)
    decision = Planner(PLUGINS).decide(job, ledger.snapshot(), 0.0)
    check(decision, puzzle)
    return decision


def check(decision: Decision, puzzle: Puzzle) -> None:
    """No device twice, and each member has what it asked for."""
    taken: set[tuple[str, str]] = set()
    for placement in decision.placements:
        member = puzzle.members[int(placement.pod.removeprefix("default/m"))]
        results = [each for choice in placement.assignment.claims for each in choice.allocation.devices.results]
        devices = [puzzle.nodes[int(each.pool[1:])][int(each.device[1:])] for each in results]
        assert {each.pool for each in results} == {placement.node}
        assert len(devices) == member.number
        assert all(map(member.accepts, devices))
        assert not member.together or len({each.root for each in devices}) == 1
        assert taken.isdisjoint((each.pool, each.device) for each in results)
        taken |= {(each.pool, each.device) for each in results}


def test_of_gangs_that_need_a_joint_allocation_99_of_100_are_placed() -> None:
    found = puzzles(rounds(50, 100))
    behind = [i for i, puzzle in enumerate(found) if len(decided(puzzle).placements) < len(puzzle.members)]
    assert len(behind) <= len(found) // 100, f"{len(behind)} puzzles: {behind}"


@pytest.mark.parametrize(
    ("nodes", "members"),
    [
        pytest.param("ab", ["ab", "a"], id="the one with less choice comes second"),
        pytest.param("abc", ["ab", "bc", "a"], id="a chain of exchanges"),
        pytest.param("aabb", ["ab", "ab", "a", "a"], id="two at once"),
    ],
)
def test_devices_of_members_are_exchanged(nodes: str, members: list[str]) -> None:
    puzzle = Puzzle((tuple(Device(each, "r") for each in nodes),), tuple(Member(1, each, False) for each in members))
    assert len(decided(puzzle).placements) == len(members)


def test_an_attempt_leaves_nothing_behind() -> None:
    puzzle = Puzzle((tuple(Device(each, "r") for each in "ab"),), tuple(Member(1, "a", False) for _ in range(2)))
    ledger, job = posed(puzzle)
    assert not Planner(PLUGINS).decide(job, ledger.snapshot(), 0.0).placements
    assert not ledger.nodes.claims.pending
    assert not ledger.nodes.claims.allocated.in_pool((DRIVER, "n0"))


def test_f11_a_device_that_a_claim_gives_back_is_seen_without_any_other_change() -> None:
    ledger, job = posed(Puzzle(((Device("a", "r"),),), (Member(1, "a", False),)))
    result = {"request": "r", "driver": DRIVER, "pool": "n0", "device": "d0"}
    other = {"metadata": {"name": "x", "namespace": "a", "uid": "x"}}
    status = {"allocation": {"devices": {"results": [result]}}}
    ledger.upsert_resource_claim(from_data({**other, "status": status}, ResourceClaim))
    planner = Planner(PLUGINS)
    assert not planner.decide(job, ledger.snapshot(), 0.0).placements
    ledger.upsert_resource_claim(from_data(other, ResourceClaim))
    assert planner.decide(job, ledger.snapshot(), 0.0).placements
    ledger.upsert_resource_slice(from_data(slice_of("n0", ()), ResourceSlice))
    assert not planner.decide(job, ledger.snapshot(), 0.0).placements
