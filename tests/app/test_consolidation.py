"""Preemptible pods move for a gang, in a whole scheduler: evicted once, bound elsewhere, and in a recording."""

from pathlib import Path

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.meta import OwnerReference
from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.app.recording.segments import SegmentWriter
from kubenexus.app.scheduler import SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.explain.replay_recording import recording_files
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture
from tests.app.test_reclaim import evicted, turn
from tests.app.test_recording import HEADER, replayed

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
  pluginConfig: [{name: GangPreemption, args: {consolidation: true, cooldownSeconds: 0}}]
"""
JOB = OwnerReference(api_version="batch/v1", kind="Job", name="sweep", uid="sweep", controller=True)
GANG = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "2"}


def sweep(name: str, node: str = "") -> Pod:
    labels = {"workload.kubenexus.io/preemptible": "true"}
    pod = a_pod(name, cpu="2", node=node, labels=labels, scheduler_name="packing")
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=[JOB]))


async def story(fixture: SchedulerFixture) -> list[str]:
    """Every node is half full with a preemptible pod; a gang needs two whole nodes; the Job makes its pods again."""
    fixture.nodes(*(a_node(f"n{i}", cpu="4") for i in range(4)))
    fixture.pods(*(sweep(f"p{i}", f"n{i}") for i in range(4)))
    fixture.pods(*(a_pod(f"g{i}", cpu="4", labels=GANG, scheduler_name="packing") for i in range(2)))
    seen = 0
    for number in range(6):
        await turn(fixture)
        for name in evicted(fixture)[seen:]:
            seen += 1
            fixture.delete(f"default/{name}")
            fixture.pods(sweep(f"again{number}{name}"))
    return evicted(fixture)


def test_the_gang_gets_whole_nodes_and_the_pods_that_moved_run_again() -> None:
    async def life() -> None:
        fixture = SchedulerFixture(CONFIG)
        assert len(await story(fixture)) == 2
        where = fixture.where()
        assert len(where) == 6, where
        alone = {where["g0"], where["g1"]}
        assert len(alone) == 2
        assert all(node not in alone for name, node in where.items() if not name.startswith("g"))

    run(life())


def test_a_recording_of_it_has_the_same_decisions_when_it_is_replayed(tmp_path: Path) -> None:
    async def life() -> None:
        book = FlightRecorder(SegmentWriter(tmp_path, 1 << 30), HEADER)
        fixture = SchedulerFixture(CONFIG, settings=SchedulerOptions(loop=LoopOptions(recorder=book)))
        assert len(await story(fixture)) == 2
        book.close()

    run(life())
    result, _ = replayed(recording_files(tmp_path), CONFIG)
    assert result.decisions >= 4
    assert result.first is None
