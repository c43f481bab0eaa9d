"""Expected fill: the table against a recursion in plain Python, and what it keeps free."""

from functools import cache

import pytest

from kubenexus.sim.replay.cluster import ReplayCluster, ledger_of
from kubenexus.sim.replay.policies.fill_table import FULL, P_END, UNIT, FillTable, Shape, coarse
from kubenexus.sim.replay.policies.named import policy_plugins
from kubenexus.sim.replay.traces.trace import JobShape, Trace, TraceJob, TraceNode

SHAPES = (Shape(4, 1, FULL, 0.5), Shape(3, 1, 7, 0.3), Shape(16, 2, FULL, 0.1), Shape(40, 8, FULL, 0.1))


def expected_idle(shapes: tuple[Shape, ...], cpu: int, whole: int, begun: tuple[int, ...]) -> float:
    """The mean idle GPU, in units, of a node that gets pods of these shapes until it ends."""

    @cache
    def value(cpu: int, whole: int, begun: tuple[int, ...]) -> float:
        idle = whole * FULL + sum(begun)
        total, weight = P_END * idle, P_END
        for shape in shapes:
            if shape.cpu > cpu:
                continue
            if shape.units == FULL:
                if whole >= shape.gpus:
                    total += shape.share * value(cpu - shape.cpu, whole - shape.gpus, begun)
                    weight += shape.share
                continue
            fitting = [left for left in begun if left >= shape.units]
            if not fitting and not whole:
                continue
            kept = list(begun)
            if fitting:
                kept.remove(min(fitting))
            left = sorted([*kept, (min(fitting) if fitting else FULL) - shape.units], reverse=True)
            then = value(cpu - shape.cpu, whole - (not fitting), tuple(left[:2]))
            total += shape.share * (then + sum(left[2:]))
            weight += shape.share
        return total / weight

    return value(cpu, whole, begun)


@pytest.mark.parametrize(
    ("cpu", "whole", "begun"),
    [(0, 8, (0, 0)), (20, 1, (0, 0)), (12, 2, (13, 6)), (64, 8, (0, 0)), (30, 3, (19, 2)), (2, 0, (10, 10))],
)
def test_the_table_is_the_mean_over_all_futures(cpu: int, whole: int, begun: tuple[int, int]) -> None:
    found = FillTable(SHAPES).at(cpu * 1000, whole, begun[0] * UNIT, begun[1] * UNIT)
    assert found == pytest.approx(expected_idle(SHAPES, cpu, whole, begun) * UNIT)


def test_pods_without_gpus_take_cpu_that_gpus_need() -> None:
    with_them, without = FillTable((*SHAPES, Shape(8, 0, 0, 0.5))), FillTable(SHAPES)
    assert with_them.at(64_000, 8, 0, 0) > without.at(64_000, 8, 0, 0)


def test_shapes_are_rounded_up() -> None:
    assert coarse(1500, 1, 460, 0.5) == Shape(2, 1, 10, 0.5)
    assert coarse(8000, 4, 1000, 0.5) == Shape(8, 4, FULL, 0.5)
    assert coarse(100, 0, 0, 0.5) == Shape(1, 0, 0, 0.5)


def test_small_pods_stay_off_whole_nodes_and_parts_share_a_gpu() -> None:
    nodes = tuple(TraceNode(f"n{i}", 64_000, 1 << 40, 8, "A") for i in range(4))
    sizes = [JobShape(cpu=4000, gpus=1), JobShape(cpu=2000, gpus=1, gpu_milli=500), JobShape(cpu=32_000, gpus=8)]
    jobs = [TraceJob(f"j{i}", sizes[pick]) for i, pick in enumerate([0, 1, 1, 0, 0, 2, 2, 2])]
    trace = Trace("t", nodes, tuple(jobs))
    cluster = ReplayCluster(ledger_of(nodes, shared=True), policy_plugins("expected-fill", trace, 1))
    taken = [cluster.try_job(job, 0.0).placements[0] for job in jobs]
    assert len({placement.node for placement in taken[:5]}) == 1
    assert taken[1].assignment.device_shares == taken[2].assignment.device_shares
    assert len({placement.node for placement in taken}) == 4
