"""A pod that nobody could evaluate in time stops nobody: it is refused alone, says why, and waits for what may help."""

import msgspec
import pytest

from kubenexus.api.codec import decode_pod
from kubenexus.api.core import Pod
from kubenexus.framework.limits import LIMITS
from kubenexus.queue.entry import Place
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.large.pods import PODS, plain
from tests.app.town import Town, in_town

WORDS = "pod has 5000 topology spread constraints; at 3 nodes at most "


def large(name: str = "large", dimension: str = "hard spread, one key", number: int = 5_000, node: str = "") -> Pod:
    pod = plain(name, node)
    PODS[dimension](pod, number)
    return decode_pod(msgspec.json.encode(pod))


def three() -> list[str]:
    return [f"n{i}" for i in range(3)]


def test_a_plain_pod_beside_a_large_one_is_placed_in_the_same_burst() -> None:
    async def life(town: Town) -> None:
        town.nodes(*map(a_node, three()))
        town.pods(large(), a_pod("beside"))
        town.scheduler.loop.burst()
        await town.work()
        assert town.where().keys() == {"beside"}
        decision = town.room.verdict("default/large")
        assert decision is not None
        assert decision.diagnosis.refused_by == (LIMITS,)
        (event,) = [text for text in town.told() if "large" in text]
        assert event.startswith(f"FailedScheduling large: 0/3 nodes are available: {WORDS}")

    in_town(life)


def test_a_large_pod_is_not_tried_again_for_what_cannot_help_it() -> None:
    async def life(town: Town) -> None:
        town.nodes(*map(a_node, three()))
        town.pods(large())
        assert await town.work() == 1
        town.clock.advance(60)
        town.nodes(a_node("n3"))  # more nodes are more work
        town.pods(a_pod("other", node="n1"), a_pod("another"))
        town.delete("default/other")
        town.nodes(a_node("n1", labels={"zone": "b"}))
        assert await town.work() == 1, "only the new pod is tried"
        assert town.room.place("default/large") is Place.UNSCHEDULABLE
        town.feed.node_gone("n3")
        assert await town.work() == 1

    in_town(life)


def test_a_large_pod_that_is_updated_is_tried_again() -> None:
    async def life(town: Town) -> None:
        town.nodes(*map(a_node, three()))
        town.pods(large())
        await town.work()
        town.clock.advance(60)
        town.pods(large(number=20))
        await town.work()
        assert town.where().keys() == {"large"}

    in_town(life)


def test_a_burst_has_few_large_pods_however_many_wait() -> None:
    """Each has to be read before it can be refused."""

    async def life(town: Town) -> None:
        town.nodes(*map(a_node, three()))
        town.pods(*(large(f"large-{i}", number=4_000 + i) for i in range(6)))
        assert town.scheduler.loop.burst() <= 2
        assert await town.work() >= 4

    in_town(life)


@pytest.mark.parametrize("dimension", ["hard spread, one key", "pod anti-affinity terms", "resources no node offers"])
def test_a_gang_with_a_large_member_is_refused_in_the_same_words(dimension: str) -> None:
    async def life(town: Town) -> None:
        town.nodes(*map(a_node, three()))
        label = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "2"}
        members = [large("a", dimension), a_pod("b")]
        marked = [msgspec.structs.replace(p.metadata, labels={**p.metadata.labels, **label}) for p in members]
        town.pods(*(msgspec.structs.replace(p, metadata=m) for p, m in zip(members, marked, strict=True)))
        await town.work()
        assert town.where() == {}
        assert {text.split(":")[0] for text in town.told()} == {"FailedScheduling a", "FailedScheduling b"}

    in_town(life)
