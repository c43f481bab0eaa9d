"""The rank that `explain` computes from a dump is the one that the queue gives."""

from itertools import combinations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST
from kubenexus.base.clock import VirtualClock
from kubenexus.base.timestamps import format_time, parse_timestamp
from kubenexus.explain.gather_job import job_of_pod
from kubenexus.explain.reservation_ahead import rank
from kubenexus.framework.aging import Aging
from kubenexus.plugins.scheduling_gates import SchedulingGates
from kubenexus.queue.gangs.gang_registry import GangRegistry
from kubenexus.queue.gangs.job_assembler import JobAssembler
from kubenexus.queue.gangs.waiting_pods import WaitingPods
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.testing.builders import a_pod
from tests.api.gangs.builders import a_member
from tests.queue.assembler_fixture import AnyProfile, AssemblyRecord, NoHolds

NOW = 1_000_000.0
GATES: Any = SchedulingGates({})
RULES = QueueProfile(
    lambda pod: pod.key.encode(), {}, [GATES], aging=Aging(), boost=lambda pod: 10 * ("p3" < pod.metadata.name < "q")
)


def aged(pod: Pod, seconds: float | None) -> Pod:
    """It has waited for so long; None: it does not say."""
    text = "a long time ago" if seconds is None else format_time(NOW - seconds)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, creation_timestamp=text))


@st.composite
def crowd(draw: st.DrawFn) -> list[Pod]:
    """Pods by themselves and members of two gangs."""
    pods = []
    for number in range(draw(st.integers(2, 9))):
        fields: dict[str, Any] = {
            "priority": draw(st.sampled_from([0, 100, 250])),
            "gates": draw(st.sampled_from([(), (), ("wait",)])),
        }
        gang = draw(st.sampled_from(["", "llama", "gemma"]))
        pod = a_member(f"p{number}", gang, **fields) if gang else a_pod(f"p{number}", **fields)
        pods.append(aged(pod, draw(st.sampled_from([None, 0.0, 59.0, 61.0, 130.0, 1000.0]))))
    return pods


def queued(*pods: Pod) -> SchedulingQueue:
    """The queue of a scheduler that has just heard of all these."""
    queue = SchedulingQueue({"": RULES}, VirtualClock(NOW))
    registry = GangRegistry()
    assembler = JobAssembler(
        queue,
        registry,
        WaitingPods(queue, registry, {}),
        PodGroupStore(),
        holds=NoHolds(),
        observer=AssemblyRecord(),
        default_topology=lambda pod: NO_TOPOLOGY_REQUEST,
        profiles=AnyProfile(),
    )
    for pod in pods:
        assembler.add_waiting(pod, parse_timestamp(pod.metadata.creation_timestamp, None))
    assembler.build_changed()
    return queue


def ranks(*pods: Pod) -> dict[str, Any]:
    """By job: what is computed from a dump."""
    by_key = {pod.key: pod for pod in pods}
    found = [job_of_pod(pod, by_key, PodGroupStore()) for pod in pods]
    return {each.job.key: rank(each, RULES, NOW) for each in found}


@given(crowd())
def test_what_comes_first_in_a_dump_comes_first_in_the_queue(pods: list[Pod]) -> None:
    queue = queued(*pods)
    found = {key: each for key, each in ranks(*pods).items() if queue.state(key) is QueueState.ACTIVE}
    for one, other in combinations(found, 2):
        first, second = queue.rank(one), queue.rank(other)
        assert first is not None
        assert second is not None
        if found[one] != found[other]:
            assert (found[one] < found[other]) == (first < second)


@pytest.mark.parametrize(
    ("alone", "first"),
    [
        pytest.param(50.0, "default/gang/llama", id="the gang is the oldest by its oldest member"),
        pytest.param(200.0, "default/alone", id="a pod that is older"),
    ],
)
def test_a_gang_is_as_old_as_its_oldest_member_and_a_job_without_an_age_comes_last(alone: float, first: str) -> None:
    pods = [
        aged(a_pod("alone"), alone),
        aged(a_pod("unsaid"), None),
        aged(a_member("old", gates=["wait"]), 130.0),
        aged(a_member("m0"), 5.0),
        aged(a_member("m1"), 5.0),
    ]
    order = sorted(set(ranks(*pods)), key=lambda key: ranks(*pods)[key])
    assert (order[0], order[-1]) == (first, "default/unsaid")
