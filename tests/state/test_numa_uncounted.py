"""Which pods a report of NUMA nodes has not counted, by its sums."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.numa.machine import CpuLayout, Machine, idle
from kubenexus.api.numa.pod_demand import ContainerDemand, PodDemand
from kubenexus.state.numa.uncounted import uncounted

MACHINE = Machine(CpuLayout((0xFFFF, 0xFFFF0000), (0xFFFF, 0xFFFF0000), tuple(1 << cpu for cpu in range(32))))


def a_demand(cpus: int) -> PodDemand:
    return PodDemand((ContainerDemand(cpus=cpus),), cpus)


def found(in_use: int, sizes: list[int], started: int) -> list[int]:
    report = idle(MACHINE)
    report.cpus &= ~((1 << in_use) - 1)
    return sorted(uncounted(MACHINE, report, [a_demand(size) for size in sizes], started))


@pytest.mark.parametrize(
    ("in_use", "sizes", "started", "later"),
    [
        pytest.param(6, [2, 4, 8], 2, [2], id="those that have not started"),
        pytest.param(2, [2, 4, 8], 2, [1, 2], id="one has started since"),
        pytest.param(14, [2, 4, 8], 2, [], id="one runs, and its start is not known yet"),
        pytest.param(8, [2, 4, 8], 3, [0, 1], id="the last came to its kubelet before the others"),
        pytest.param(3, [2, 4, 8], 3, [1, 2], id="no choice gives the sum: rather too many"),
        pytest.param(20, [2, 4, 8], 2, [2], id="it counts more than all of them: by their starts"),
        pytest.param(0, [], 0, [], id="no pods"),
    ],
)
def test_the_sums_tell(in_use: int, sizes: list[int], started: int, later: list[int]) -> None:
    assert found(in_use, sizes, started) == later


@given(st.lists(st.integers(1, 4), max_size=8), st.integers(0, 8), st.sets(st.integers(0, 7)))
def test_what_is_counted_is_never_more_than_what_is_in_use(sizes: list[int], started: int, missing: set[int]) -> None:
    in_use = sum(size for number, size in enumerate(sizes) if number not in missing)
    later = found(in_use, sizes, min(started, len(sizes)))
    assert sum(size for number, size in enumerate(sizes) if number not in later) == in_use
