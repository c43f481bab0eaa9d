"""The preferred hints of each manager are those that it gives with all others, also after an init container."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.numa.cpu_manager import CpuManager
from kubenexus.api.numa.device_manager import DeviceManager
from kubenexus.api.numa.machine import Kubelet, Machine, Usage, narrowest_sets
from kubenexus.api.numa.memory_manager import MemoryManager
from kubenexus.api.numa.merge import Affinity, Hints
from kubenexus.api.numa.pod_demand import ContainerDemand
from kubenexus.api.numa.refusal import Refused
from tests.api.numa.builders import GPU
from tests.api.numa.test_many_nodes import GI, machines

SIZES = st.tuples(st.integers(0, 9), st.integers(0, 20), st.integers(0, 3))
KUBELET = Kubelet("restricted", static_cpus=True, static_memory=True)


def preferred(hints: Hints) -> set[int] | None:
    return None if hints is None else {zones for zones, best in hints.items() if best}


def a_container(sizes: tuple[int, int, int], *, init: bool) -> ContainerDemand:
    cpus, memory, gpus = sizes
    amounts = (("memory", memory * GI),) if memory else ()
    return ContainerDemand("c", init, cpus=cpus, memory=amounts, devices=((GPU, gpus),) if gpus else ())


@given(machines(), SIZES, SIZES, st.sampled_from([None, 1, 2]))
def test_preferred_hints_are_part_of_all_hints(
    node: tuple[Machine, Usage], before: tuple[int, int, int], sizes: tuple[int, int, int], zones: int | None
) -> None:
    machine, usage = node
    first, then = a_container(before, init=True), a_container(sizes, init=False)
    cpus, devices, memory = (
        CpuManager(KUBELET, machine, usage),
        DeviceManager(machine, usage),
        MemoryManager(machine, usage),
    )
    for take in (cpus.allocate, devices.allocate):
        with suppress(Refused):
            take(first, zones)
    with suppress(Refused):
        memory.allocate(first, Affinity(zones))
    assert preferred(cpus.hints(then.cpus, preferred_only=True)) == preferred(cpus.hints(then.cpus))
    quick, full = (devices.hints(then.devices, reuse=True, preferred_only=only) for only in (True, False))
    assert [*map(preferred, quick)] == [*map(preferred, full)]
    quick, full = (memory.hints(then.memory, preferred_only=only) for only in (True, False))
    assert [*map(preferred, quick)] == [*map(preferred, full)]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(0, 20), st.integers(0, 31))
def test_the_narrowest_sets_are_those_that_a_look_at_all_sets_finds(
    amounts: list[int], number: int, among: int
) -> None:
    among &= (1 << len(amounts)) - 1
    enough = [
        zones
        for zones in range(1, 1 << len(amounts))
        if not zones & ~among and sum(amount for zone, amount in enumerate(amounts) if zones >> zone & 1) >= number
    ]
    width = min(map(int.bit_count, enough), default=0)
    assert sorted(narrowest_sets([amounts], [number], among)) == [each for each in enough if each.bit_count() == width]
