"""What a job asks for: the sum over its pods, worked out once for a decision."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubenexus.api.core import Pod
from kubenexus.api.queues.settings import QueueSettings
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.gang_limits import GANG_LIMITS
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.queue.fair import job_request as module
from kubenexus.queue.fair.job_request import job_request
from kubenexus.state.footprint import Footprint, footprint_of
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.strategies import pods


def test_the_request_of_a_gang_is_the_sum_and_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def counted(pod: Pod) -> Footprint:
        looks.append(pod.key)
        return footprint_of(pod)

    monkeypatch.setattr(module, "footprint_of", counted)
    one = Job("default/g", tuple([a_pod(f"p{i}", cpu=1 + i) for i in range(3)]), 3)
    other = Job("default/h", (a_pod("q", cpu=5),), 1)
    assert [dict(job_request(one).amounts)["cpu"] for _ in range(3)] == [6000] * 3
    assert len(looks) == 3
    assert dict(job_request(other).amounts)["cpu"] == 5000
    assert job_request(one).pods == 3


def _counting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    looks: list[str] = []

    def counted(pod: Pod) -> Footprint:
        looks.append(pod.key)
        return footprint_of(pod)

    monkeypatch.setattr(module, "footprint_of", counted)
    return looks


def test_pods_with_a_host_name_each_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _counting(monkeypatch)
    alike = [a_pod(f"p{i}", cpu=2) for i in range(50)]
    members = [replace(pod, spec=replace(pod.spec, node_selector={"host": pod.metadata.name})) for pod in alike]
    assert dict(job_request(Job("default/g", tuple(members), 50)).amounts)["cpu"] == 100_000
    assert len(looks) == 1


def test_a_gang_of_too_many_requests_is_not_worked_out_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _counting(monkeypatch)
    monkeypatch.setattr(module, "MAX_DIFFERENT", 5)
    members = tuple([a_pod(f"p{i}", cpu=1 + i) for i in range(20)])
    few, many = Job("default/g", members[:5], 5), Job("default/h", members, 20)
    assert module.is_counted(few)
    assert not module.is_counted(many)
    assert len(looks) == 10


@given(a_gang=st.lists(pods(running=True), min_size=1, max_size=8))
def test_the_request_is_the_sum_of_what_the_ledger_will_count(a_gang: list[Pod]) -> None:
    members = tuple([replace(pod, metadata=replace(pod.metadata, name=f"p{i}")) for i, pod in enumerate(a_gang)])
    expected: Counter[str] = Counter()
    for pod in members:
        expected.update(dict(footprint_of(pod).amounts))
    assert dict(job_request(Job("default/g", members, 1)).amounts) == dict(expected)


def test_with_queues_a_gang_that_cannot_be_added_up_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DIFFERENT", 2)
    ledger, planner = Ledger(), Planner(profile_plugins(shipped_profile()))
    ledger.upsert_node(a_node("n", cpu=64))
    job = Job("default/gang/g", tuple([a_pod(f"p{i}", cpu=1 + i) for i in range(3)]), 3)
    assert planner.decide(job, ledger.snapshot(), 0.0).placed, "without queues nothing is added up"
    ledger.queues.set_queue(QueueSettings("q"))
    refusal = planner.decide(job, ledger.snapshot(), 0.0)
    assert refusal.diagnosis.refused_by == (GANG_LIMITS,)
    assert "different requests; with queues no more can be added up" in refusal.sentence()
