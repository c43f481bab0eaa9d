"""GPU states: what is left of the GPUs of a row, and where pods lead from there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.plugins.devices.demand import gpu_states, node_states
from kubenexus.plugins.devices.demand.fill_table import CPUS, PAIR_OF, PAIRS
from kubenexus.plugins.devices.demand.gpu_states import (
    GpuRequest,
    GpuStates,
    after_part,
    after_part_on_row,
    state_of,
    states_of,
)
from kubenexus.plugins.devices.demand.node_states import gpus_left, states_for
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node

LEFT = st.lists(st.one_of(st.just(WHOLE), st.integers(0, WHOLE)), min_size=3, max_size=10).map(
    lambda left: sorted(left, reverse=True)
)
REQUESTS = st.one_of(
    st.builds(GpuRequest, st.integers(0, 9), st.just(WHOLE)), st.builds(GpuRequest, st.just(1), st.integers(1, WHOLE))
)


@pytest.mark.parametrize(
    ("milli", "left", "then"),
    [
        pytest.param(200, [1000, 700, 300], [1000, 700, 100], id="a part fills up the fullest"),
        pytest.param(500, [1000, 1000, 300], [1000, 500, 300], id="a part begins a GPU if it must"),
        pytest.param(800, [500, 0, 0], [0, 0, 0], id="more than there is"),
    ],
)
def test_what_is_left_after_a_part(milli: int, left: list[int], then: list[int]) -> None:
    assert after_part_on_row(milli, left) == then
    assert after_part(milli, np.array(left)[:, None])[:, 0].tolist() == then


@pytest.mark.parametrize(
    ("left", "whole", "counted", "pair", "lost"),
    [
        pytest.param([1000, 1000, 300], 2, 2, (6, 0), 0, id="two whole GPUs and a part"),
        pytest.param([520, 310, 199], 0, 0, (10, 6), 20 + 10 + 199, id="what is beyond units, and a third GPU in use"),
        pytest.param([1000, 1000, 1000], 3, 3, (0, 0), 0, id="all whole"),
        pytest.param([1000] * 9, 9, 8, (0, 0), 1000, id="more whole GPUs than the table has"),
    ],
)
def test_the_state_that_the_gpus_of_a_node_are_in(
    left: list[int], whole: int, counted: int, pair: tuple[int, int], lost: int
) -> None:
    state = (whole, (counted * PAIRS + PAIR_OF[pair]) * CPUS, lost)
    assert state_of(left) == state
    assert tuple(states_of(np.array(left)[:, None])[:, 0].tolist()) == state


@given(st.lists(LEFT, min_size=1, max_size=30), REQUESTS)
def test_a_table_has_the_same_for_states_one_by_one_and_all_at_once(lefts: list[list[int]], asked: GpuRequest) -> None:
    one_by_one, at_once = GpuStates(), GpuStates()
    for left in lefts:
        number = one_by_one.number_of(left)
        one = one_by_one.table(asked)[:, :, number].tolist()
        assert at_once.number_of(left) == number
        assert tuple(one[field][0] for field in range(3)) == state_of(left)
    count = len(one_by_one)
    assert at_once.table(asked)[:, :, :count].tolist() == one_by_one.table(asked)[:, :, :count].tolist()


@given(st.lists(LEFT, min_size=1, max_size=30))
def test_what_is_left_is_found_again_by_number(lefts: list[list[int]]) -> None:
    states = GpuStates()
    for left in lefts:
        number = states.number_of(left)
        assert states.left(np.array([number]), 12)[:, 0].tolist() == left + [0] * (12 - len(left))


def test_equal_states_have_one_number() -> None:
    states = GpuStates()
    assert [states.number_of(left) for left in ([5, 0, 0], [7, 1, 0], [5, 0, 0])] == [0, 1, 0]


def test_tables_are_dropped_when_they_become_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_states, "MAX_TABLE_BYTES", 200)
    states = GpuStates()
    for milli in range(1, 20):
        number = states.number_of([1000, milli, 0])
        assert states.table(GpuRequest(1, milli))[0, :, number].tolist() == [1, 1]


def test_rows_get_new_numbers_when_there_are_too_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger()
    ledger.upsert_node(a_node("n0", cpu=64, gpu=4))
    ledger.read_devices()
    before, states = gpus_left(Nodes(ledger.nodes)).tolist(), states_for(ledger.nodes)
    for milli in range(9):
        states.number_of([milli])
    monkeypatch.setattr(node_states, "MAX_STATES", 4)
    assert states_for(ledger.nodes) is not states
    assert gpus_left(Nodes(ledger.nodes)).tolist() == before == [[1000]] * 4
