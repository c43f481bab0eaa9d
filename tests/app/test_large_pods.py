"""A pod that nobody could evaluate in time stops nobody: it is refused alone, says why, and waits for what may help."""

import msgspec
import pytest

from kubenexus.api.codec import decode_pod
from kubenexus.api.core import Pod
from kubenexus.framework.pod_limits import POD_LIMITS
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.large.pods import PODS, plain
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

WORDS = "pod has 5000 topology spread constraints; at 3 nodes at most "


def large(name: str = "large", dimension: str = "hard spread, one key", number: int = 5_000, node: str = "") -> Pod:
    pod = plain(name, node)
    pod["spec"]["schedulerName"] = "default-scheduler"
    PODS[dimension](pod, number)
    return decode_pod(msgspec.json.encode(pod))


def three() -> list[str]:
    return [f"n{i}" for i in range(3)]


def test_a_plain_pod_beside_a_large_one_is_placed_in_the_same_burst() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*map(a_node, three()))
        fixture.pods(large(), a_pod("beside"))
        fixture.scheduler.loop.run_burst()
        await fixture.work()
        assert fixture.where().keys() == {"beside"}
        decision = fixture.queue.last_decision("default/large")
        assert decision is not None
        assert decision.diagnosis.refused_by == (POD_LIMITS,)
        (event,) = [text for text in fixture.told() if "large" in text]
        assert event.startswith(f"FailedScheduling large: 0/3 nodes are available: {WORDS}")

    scheduler_test(life)


def test_a_large_pod_is_not_tried_again_for_what_cannot_help_it() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*map(a_node, three()))
        fixture.pods(large())
        assert await fixture.work() == 1
        fixture.clock.advance(60)
        fixture.nodes(a_node("n3"))  # more nodes are more work
        fixture.pods(a_pod("other", node="n1"), a_pod("another"))
        fixture.delete("default/other")
        fixture.nodes(a_node("n1", labels={"zone": "b"}))
        assert await fixture.work() == 1, "only the new pod is tried"
        assert fixture.queue.state("default/large") is QueueState.UNSCHEDULABLE
        fixture.handlers.on_node_delete("n3")
        assert await fixture.work() == 1

    scheduler_test(life)


def test_a_large_pod_that_is_updated_is_tried_again() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*map(a_node, three()))
        fixture.pods(large())
        await fixture.work()
        fixture.clock.advance(60)
        fixture.pods(large(number=20))
        await fixture.work()
        assert fixture.where().keys() == {"large"}

    scheduler_test(life)


def test_a_burst_has_few_large_pods_however_many_wait() -> None:
    """Each has to be read before it can be refused."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*map(a_node, three()))
        fixture.pods(*(large(f"large-{i}", number=4_000 + i) for i in range(6)))
        assert fixture.scheduler.loop.run_burst() <= 2
        assert await fixture.work() >= 4

    scheduler_test(life)


@pytest.mark.parametrize("dimension", ["hard spread, one key", "pod anti-affinity terms", "resources no node offers"])
def test_a_gang_with_a_large_member_is_refused_in_the_same_words(dimension: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*map(a_node, three()))
        label = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "2"}
        members = [large("a", dimension), a_pod("b")]
        marked = [msgspec.structs.replace(p.metadata, labels={**p.metadata.labels, **label}) for p in members]
        fixture.pods(*(msgspec.structs.replace(p, metadata=m) for p, m in zip(members, marked, strict=True)))
        await fixture.work()
        assert fixture.where() == {}
        assert {text.split(":")[0] for text in fixture.told()} == {"FailedScheduling a", "FailedScheduling b"}

    scheduler_test(life)
