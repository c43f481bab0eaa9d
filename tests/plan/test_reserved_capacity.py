"""Preemption beside reserved capacity: nothing is evicted whose room would be reserved again."""

import pytest

from kubenexus.api.reservations.request import ReservationOwner
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.preemption.default_preemption import CandidateLimits
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import default_profile, profile_plugins, shipped_profile
from kubenexus.state.ledger import Ledger
from kubenexus.state.reservations.table import ReservationRecord, ReservedCapacity
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger


def planner(profile: str) -> Planner:
    if profile == "default-scheduler":
        return Planner(profile_plugins(default_profile()), preemption=CandidateLimits())
    return Planner(profile_plugins(shipped_profile()), gang_preemption=PreemptionPolicy())


def claimed(decides: Planner, priority: int | None = None) -> Ledger:
    """A node that is reserved for team A, and full of a pod of team A."""
    ledger = a_ledger([a_node("n", cpu=4)])
    entry = ReservedCapacity("e", "s/r", "n", (("cpu", 4000),))
    ledger.reserve(ReservationRecord("s/r", ReservationOwner(frozenset({"team-a"})), {"e": entry}, priority))
    job = Job.of(a_pod("own", namespace="team-a", cpu=4))
    commit(decides.decide(job, ledger.snapshot(), 0.0), job, ledger, 0.0)
    assert entry.record is None
    return ledger


@pytest.mark.parametrize("profile", ["default-scheduler", "kubenexus-scheduler"])
@pytest.mark.parametrize(
    ("priority", "reserved_up_to", "expected"),
    [
        pytest.param(100, None, False, id="a pod on reserved capacity is no victim of others"),
        pytest.param(100, 50, True, id="unless their priority allows them to take the reservation"),
        pytest.param(2_000_000_000, None, True, id="or they are critical for the cluster"),
    ],
)
def test_who_evicts_a_pod_on_reserved_capacity(
    profile: str, priority: int, reserved_up_to: int | None, expected: bool
) -> None:
    decides = planner(profile)
    ledger = claimed(decides, reserved_up_to)
    preemptor = Job.of(a_pod("p", cpu=4, priority=priority, scheduler_name=profile))
    decision = decides.decide(preemptor, ledger.snapshot(), 0.0)
    assert (decision.preemption is not None) is expected
    if expected:
        ledger.remove_pod("team-a/own")
        assert decides.decide(preemptor, ledger.snapshot(), 0.0).placed


def test_an_owner_may_evict_its_own_pods_of_lower_priority() -> None:
    decides = planner("kubenexus-scheduler")
    ledger = claimed(decides)
    preemptor = Job.of(a_pod("p", namespace="team-a", cpu=4, priority=100))
    assert decides.decide(preemptor, ledger.snapshot(), 0.0).preemption is not None
    ledger.remove_pod("team-a/own")
    assert decides.decide(preemptor, ledger.snapshot(), 0.0).placed
