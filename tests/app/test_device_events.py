"""What the watches of ResourceSlices and NodeResourceTopologies say wakes pods that lack devices."""

from collections.abc import Iterator

import msgspec
import pytest

from kubenexus.api.devices.device import NodeDevices
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.api.devices.resource_slice import DeviceTaint, ResourceSlice
from kubenexus.api.meta import ObjectMeta
from kubenexus.app.scheduling_loop import MAX_DEVICE_READS
from kubenexus.app.watch.informers import InformerHandler
from kubenexus.client import kinds
from kubenexus.client.watch_events import ADDED, DELETED, MODIFIED, WatchEvent
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import GPU, a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.state.devices.slices import a_slice, gpus

WELL = a_slice("s", "n", *gpus(4))


def sick(of: ResourceSlice) -> ResourceSlice:
    """The slice with a taint on its last device."""
    *others, last = of.spec.devices
    taint = DeviceTaint(key="gpu.nvidia.com/unhealthy", effect="NoSchedule")
    devices = [*others, msgspec.structs.replace(last, taints=[taint])]
    return msgspec.structs.replace(of, spec=msgspec.structs.replace(of.spec, devices=devices))


def hearing(fixture: SchedulerFixture, resource: kinds.ApiResource) -> InformerHandler:
    return InformerHandler(fixture.handlers, resource, fixture.scheduler.wakeup)


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(WatchEvent(MODIFIED, WELL), id="the card is well again"),
        pytest.param(WatchEvent(DELETED, sick(WELL)), id="the slice is gone"),
    ],
)
def test_a_pod_that_a_sick_card_kept_waiting_is_woken(then: WatchEvent) -> None:
    """The kubelet offers all four cards all the while."""
    waits = a_pod("waits", requests={GPU: 4}, scheduler_name="packing")

    async def life(fixture: SchedulerFixture) -> None:
        slices = hearing(fixture, kinds.RESOURCE_SLICES)
        fixture.nodes(a_node("n", cpu=64, resources={GPU: 4}))
        slices.events([WatchEvent(ADDED, sick(WELL))])
        fixture.pods(waits)
        await fixture.work()
        assert fixture.queue.state(waits.key) is QueueState.UNSCHEDULABLE
        slices.events([then])
        fixture.clock.advance(11)
        await fixture.work()
        assert "waits" in fixture.where()
        assert not fixture.handlers.bad_objects.logged

    scheduler_test(life)


def test_a_topology_that_changes_and_goes_can_be_used() -> None:
    first = NodeResourceTopology(metadata=ObjectMeta(name="n"))
    second = msgspec.structs.replace(first, topology_policies=["single-numa-node"])

    async def life(fixture: SchedulerFixture) -> None:
        topologies = hearing(fixture, kinds.NODE_RESOURCE_TOPOLOGIES)
        for event in (WatchEvent(ADDED, first), WatchEvent(MODIFIED, second), WatchEvent(DELETED, second)):
            topologies.events([event])
        assert not fixture.handlers.bad_objects.logged
        assert not fixture.handlers.objects.keys("NodeResourceTopology")

    scheduler_test(life)


def test_a_burst_reads_the_devices_of_twenty_nodes_and_decides_when_all_are_read() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        names = [f"n{i}" for i in range(2 * MAX_DEVICE_READS + 5)]
        fixture.nodes(*(a_node(name, cpu=4) for name in names))
        await fixture.work()
        slices = hearing(fixture, kinds.RESOURCE_SLICES)
        slices.events([WatchEvent(ADDED, a_slice(f"s-{name}", name, *gpus(1))) for name in names])
        fixture.pods(a_pod("waits", cpu=1))
        read = list[int]()
        real = fixture.ledger._inventory.read

        def counted(most: int | None = None) -> Iterator[tuple[str, NodeDevices]]:
            for each in real(most):
                read[-1] += 1
                yield each

        fixture.ledger._inventory.read = counted  # type: ignore[method-assign]
        placed = list[int]()
        for _ in range(3):
            read.append(0)
            placed.append(fixture.scheduler.loop.run_burst())
        assert read == [MAX_DEVICE_READS, MAX_DEVICE_READS, 5]
        assert placed == [0, 0, 1]

    scheduler_test(life)
