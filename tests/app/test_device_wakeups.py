"""Pods that wait for a part of a GPU are woken by whatever frees one, long before the flush after five minutes."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import DeviceShare, devices_annotation
from kubenexus.api.keys import discovered, gpu
from kubenexus.queue.queued_job import QueueState
from kubenexus.state.pods import PodStage
from kubenexus.testing.builders import a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_wakeups import NODES, Story, no_pod_stays_parked
from tests.bind.server import FORBIDDEN
from tests.state.devices.slices import a_gpu_node

OURS = "packing"
SLICED = {discovered.REPLICAS.key: "3", discovered.COUNT.key: "1"}
SEEDS = (0, 1, 2)


def part(name: str, fraction: str = "0.6", **more: Any) -> Pod:
    return ours(name, annotations={gpu.FRACTION.key: fraction}, **more)


def ours(name: str, **more: Any) -> Pod:
    return a_pod(name, **{"scheduler_name": OURS, **more})


def annotated(pod: Pod, *, devices: str) -> Pod:
    """The pod with other devices in its annotation; "" removes it."""
    texts = {key: text for key, text in pod.metadata.annotations.items() if key != gpu.DEVICES.key}
    texts |= {gpu.DEVICES.key: devices} if devices else {}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=texts))


def confirmed(fixture: SchedulerFixture) -> None:
    """The watch shows the holder bound."""
    fixture.echo()
    assert fixture.stage("holds") is PodStage.BOUND


def nothing(fixture: SchedulerFixture) -> None:
    assert fixture.stage("holds") is PodStage.ASSUMED


def annotation_removed(fixture: SchedulerFixture) -> None:
    confirmed(fixture)
    fixture.pods(annotated(fixture.server.pods["default/holds"], devices=""))


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(confirmed, id="it is bound"),
        pytest.param(nothing, id="its bind is not confirmed yet"),
        pytest.param(annotation_removed, id="its owner has removed the annotation"),
    ],
)
def test_a_part_is_free_when_its_pod_is_deleted(before: Callable[[SchedulerFixture], None]) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_gpu_node("n", 1, shared=True))
        fixture.pods(part("holds"))
        await fixture.work()
        before(fixture)
        await waits_for(fixture, part("waits"))
        fixture.delete("default/holds")
        await is_placed(fixture, "waits")

    scheduler_test(life)


def test_a_part_is_free_when_a_bind_is_refused() -> None:
    """The pod whose bind failed is in backoff then: the other gets the part."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_gpu_node("n", 1, shared=True))
        fixture.server.script.append(FORBIDDEN)
        fixture.server.held = asyncio.Event()
        fixture.pods(part("holds"))
        await fixture.work(waiting=1)
        fixture.pods(part("waits"))
        for seconds in (0, 20):
            fixture.clock.advance(seconds)
            await fixture.work(waiting=1)
        assert fixture.queue.state("default/waits") is QueueState.UNSCHEDULABLE
        fixture.server.held.set()
        await fixture.work()
        assert fixture.where() == {"waits": "n"}

    scheduler_test(life)


def test_a_nominated_pod_that_gets_named_devices_leaves_the_rest_of_the_card() -> None:
    """While it is nominated its replica may be on any card, so no part is free. It then takes a third of the card."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_gpu_node("n", 3, shared=True, labels=SLICED))
        fixture.pods(ours("nominated", gpu=1, nominated="n", priority=5, selects={"good": "1"}))
        await waits_for(fixture, part("waits", "0.3"))
        fixture.nodes(a_gpu_node("n", 3, shared=True, labels=SLICED | {"good": "1"}))
        await is_placed(fixture, "nominated")
        await is_placed(fixture, "waits")

    scheduler_test(life)


def test_a_running_pod_whose_devices_get_names_leaves_the_other_cards() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_gpu_node("n", 2, shared=True))
        runs = a_pod("runs", gpu=1, node="n", scheduler_name="another")
        fixture.pods(runs, part("small", "0.1", node="n"))
        fixture.pods(
            annotated(fixture.server.pods["default/small"], devices=devices_annotation((DeviceShare("gpu-1", 950),)))
        )
        await waits_for(fixture, part("waits", "0.9"))
        fixture.pods(annotated(runs, devices=devices_annotation((DeviceShare("gpu-1"),))))
        await is_placed(fixture, "waits")

    scheduler_test(life)


async def waits_for(fixture: SchedulerFixture, pod: Pod) -> None:
    fixture.pods(pod)
    await fixture.work()
    fixture.clock.advance(20)
    await fixture.work()
    assert fixture.queue.state(pod.key) is QueueState.UNSCHEDULABLE


async def is_placed(fixture: SchedulerFixture, name: str) -> None:
    for _ in range(2):
        fixture.clock.advance(11)
        await fixture.work()
    assert name in fixture.where()


class DeviceStory(Story):
    """The same events on nodes with cards, for pods that want some or a part of one."""

    def a_node_comes(self) -> None:
        draw, count = self.rng, self.rng.choice([1, 2])
        sliced = draw.random() < 0.3
        labels = {discovered.REPLICAS.key: "3", discovered.COUNT.key: str(count)} if sliced else {}
        shared = draw.random() < 0.7
        self.fixture.nodes(a_gpu_node(draw.choice(NODES), count * 3 if sliced else count, shared=shared, labels=labels))

    def a_pod_changes(self) -> None:
        """Its labels: the API server lets no pod request other devices than before."""
        if pod := self._any(lambda pod: bool(pod.spec.node_name)):
            meta = msgspec.structs.replace(pod.metadata, labels={"app": self.rng.choice(["web", "db"])})
            self.fixture.pods(msgspec.structs.replace(pod, metadata=meta))

    def _drawn(self) -> dict[str, Any]:
        draw, asks = self.rng, super()._drawn() | {"scheduler_name": OURS}
        match draw.randrange(4):
            case 0:
                return asks | {"gpu": draw.choice([1, 2])}
            case 1:
                return asks | {"annotations": {gpu.SHARE_MEMORY.key: draw.choice(["10Gi", "30Gi"])}}
            case _:
                pass
        return asks | {"annotations": {gpu.FRACTION.key: draw.choice(["0.3", "0.5", "0.6", "1"])}}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_pod_stays_parked_for_a_device_that_is_free(seed: int) -> None:
    no_pod_stays_parked(DeviceStory, seed)
