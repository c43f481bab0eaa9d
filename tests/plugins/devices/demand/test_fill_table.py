"""The table of expected idle GPU against a recursion in plain Python."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from kubenexus.plugins.devices.demand import expected_idle
from kubenexus.plugins.devices.demand.expected_idle import FillTables
from kubenexus.plugins.devices.demand.fill_table import (
    CPU_UNIT,
    FULL,
    P_END,
    PAIR_OF,
    PAIRS,
    UNIT,
    CoarseShape,
    coarse,
    fill_values,
)
from kubenexus.plugins.devices.demand.gpu_states import state_of
from kubenexus.state.demand import Demand, DemandShape

ONE, PART, TWO = CoarseShape(2, 1, FULL, 0.5), CoarseShape(2, 1, 7, 0.3), CoarseShape(8, 2, FULL, 0.1)
SHAPES = (ONE, PART, TWO, CoarseShape(20, 8, FULL, 0.1))


def mean_idle(shapes: tuple[CoarseShape, ...], cpu: int, whole: int, begun: tuple[int, ...]) -> float:
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
    [(0, 8, (0, 0)), (10, 1, (0, 0)), (6, 2, (13, 6)), (32, 8, (0, 0)), (15, 3, (19, 2)), (1, 0, (10, 10))],
)
def test_the_table_is_the_mean_over_all_futures(cpu: int, whole: int, begun: tuple[int, int]) -> None:
    found = fill_values(SHAPES)[whole * PAIRS + PAIR_OF[begun], cpu]
    assert found == pytest.approx(mean_idle(SHAPES, cpu, whole, begun) * UNIT, rel=1e-4)


def test_a_table_for_small_nodes_has_the_same_values() -> None:
    # To the last bits of a float32: products of matrices of other sizes are added up in another order.
    assert np.allclose(fill_values(SHAPES, 2)[: 3 * PAIRS], fill_values(SHAPES)[: 3 * PAIRS], rtol=1e-5, atol=1e-3)


def test_pods_without_gpus_take_cpu_that_gpus_need() -> None:
    without_gpus = CoarseShape(4, 0, 0, 0.5)
    assert fill_values((*SHAPES, without_gpus))[8 * PAIRS, 32] > fill_values(SHAPES)[8 * PAIRS, 32]


@pytest.mark.parametrize("shapes", [(), (CoarseShape(4, 0, 0, 1.0),), (CoarseShape(999, 1, FULL, 1.0),)])
def test_all_that_no_shape_can_use_stays_idle(shapes: tuple[CoarseShape, ...]) -> None:
    assert fill_values(shapes)[3 * PAIRS + PAIR_OF[4, 2], 10] == pytest.approx(3000 + 6 * UNIT)


@pytest.mark.parametrize(
    ("asked", "rounded"),
    [
        ((1500, 1, 460), (1, 1, 10)),
        ((8000, 4, 1000), (4, 4, FULL)),
        ((100, 0, 0), (1, 0, 0)),
        ((CPU_UNIT + 1, 1, 1000), (2, 1, FULL)),
    ],
)
def test_shapes_are_rounded_up(asked: tuple[int, int, int], rounded: tuple[int, int, int]) -> None:
    assert coarse(*asked, 0.5)[:3] == rounded


def test_a_type_has_the_table_of_the_shapes_that_may_run_there() -> None:
    any_type, t4_only = DemandShape(4000, 1, 1000), DemandShape(4000, 1, 1000, ("T4",))
    tables = FillTables(Demand(1, ((any_type, 0.001), (t4_only, 0.999)), types=(("T4", 2), ("V100", 2))))
    left = state_of([1000, 1000, 0])
    there, elsewhere = (tables.expected_of_row(tables.code_of(name), 16_000, left) for name in ("T4", "V100"))
    assert there < elsewhere == tables.expected_of_row(tables.code_of("not known"), 16_000, left)


@pytest.mark.parametrize(
    ("share", "tables"),
    [
        pytest.param(0.0, 1, id="no pod names a type"),
        pytest.param(0.001, 1, id="hardly any pod does"),
        pytest.param(0.2, 2, id="the type that pods name has a table of its own"),
    ],
)
def test_types_that_get_the_same_shapes_share_a_table(
    share: float, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[int] = []

    def counted(mix: Sequence[CoarseShape], most: int) -> Any:
        built.append(most)
        return fill_values(mix, most)

    monkeypatch.setattr(expected_idle, "fill_values", counted)
    mix = ((DemandShape(4000, 1, 1000), 1 - share), (DemandShape(4000, 1, 1000, ("T4",)), share))
    found = FillTables(Demand(1, mix, types=(("T4", 2), ("V100", 2), ("G2", 8))))
    assert (len(built), max(built)) == (tables, 8)
    by_type = {found.expected_of_row(found.code_of(name), 16_000, state_of([1000, 1000, 0])) for name in ("T4", "G2")}
    assert len(by_type) == tables
