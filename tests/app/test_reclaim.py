"""A queue takes back what others borrowed, in a whole scheduler: evicted, bound, and no loop; and in a recording."""

from pathlib import Path

import pytest

from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.app.recording.segments import SegmentWriter
from kubenexus.app.scheduler import SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.explain.replay_recording import recording_files
from kubenexus.sim.virtual.loop import run
from kubenexus.state.object_kinds import QUEUE
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture
from tests.app.test_queues import a_queue
from tests.app.test_recording import HEADER, replayed
from tests.async_helpers import yield_to_loop

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
  pluginConfig: [{name: GangPreemption, args: {reclaim: true, cooldownSeconds: 0}}]
"""


def evicted(fixture: SchedulerFixture) -> list[str]:
    paths = [call.path for call in fixture.server.calls if call.path.endswith("/eviction")]
    return [path.removesuffix("/eviction").rpartition("/")[2] for path in paths]


async def turn(fixture: SchedulerFixture) -> None:
    fixture.clock.advance(60.0)
    await fixture.work()
    fixture.echo()
    await yield_to_loop()
    await fixture.work()


async def story(fixture: SchedulerFixture) -> list[str]:
    """Queue b has filled the cluster; queue a wants its guarantee, and b's pods come again as fast as they go."""
    fixture.nodes(a_node("n", cpu="4"))
    for queue in (a_queue("a", guaranteed={"cpu": 2}, namespaces=["a"]), a_queue("b", namespaces=["b"])):
        fixture.handlers.objects.on_update(QUEUE, queue)
    fixture.pods(*(a_pod(f"b{i}", namespace="b", cpu="1", scheduler_name="packing") for i in range(4)))
    await turn(fixture)
    fixture.pods(*(a_pod(f"a{i}", namespace="a", cpu="1", scheduler_name="packing") for i in range(4)))
    seen = 0
    for number in range(8):
        await turn(fixture)
        for name in evicted(fixture)[seen:]:
            seen += 1
            fixture.delete(f"b/{name}")
            fixture.pods(a_pod(f"again{number}{name}", namespace="b", cpu="1", scheduler_name="packing"))
    return evicted(fixture)


def test_it_evicts_as_many_as_its_guarantee_needs_and_then_none() -> None:
    async def life() -> None:
        fixture = SchedulerFixture(CONFIG)
        gone = await story(fixture)
        assert len(gone) == 2
        assert fixture.scheduler.metrics.queues.reclaimed_pods.labels("b").value == 2
        assert fixture.ledger.queues.queue_of("a").used["cpu"] == 2000
        assert fixture.ledger.queues.queue_of("b").used["cpu"] == 2000

    run(life())


PAST = "  - {name: KubeNexus, args: {queueUsageHalfLifeSeconds: 600}}\n"


@pytest.mark.parametrize("more", [pytest.param("", id="as it is"), pytest.param(PAST, id="with what was used before")])
def test_a_recording_of_it_has_the_same_decisions_when_it_is_replayed(tmp_path: Path, more: str) -> None:
    config = CONFIG.replace("pluginConfig: [{name: GangPreemption", "pluginConfig:\n  - {name: GangPreemption")
    config = config.replace("cooldownSeconds: 0}}]", "cooldownSeconds: 0}}") + more

    async def life() -> None:
        book = FlightRecorder(SegmentWriter(tmp_path, 1 << 30), HEADER)
        fixture = SchedulerFixture(config, settings=SchedulerOptions(loop=LoopOptions(recorder=book)))
        assert len(await story(fixture)) == 2
        book.close()

    run(life())
    result, ledger = replayed(recording_files(tmp_path), config)
    assert result.decisions > 8
    assert result.first is None
    assert ledger.queues.queue_of("a").guaranteed == {"cpu": 2000}
