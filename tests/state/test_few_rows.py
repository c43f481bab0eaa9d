"""A counter of few rows says what one of all rows says, before and after it has become one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.state import pod_counter
from kubenexus.state.labels import LabelColumns
from kubenexus.state.pod_counter import FewRows, PodCounter

KEYS = ("zone", "host", "rack")
ROWS = 30
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, ROWS - 1)),
        st.tuples(st.just("take"), st.integers(0, ROWS - 1)),
        st.tuples(st.just("ask"), st.sampled_from(KEYS)),
        st.tuples(st.just("relabel"), st.integers(0, ROWS - 1)),
    ),
    max_size=60,
)


def labelled() -> LabelColumns:
    labels = LabelColumns(64)
    for row in range(ROWS):
        rack = {"rack": f"r{row // 5}"} if row % 2 else {}
        labels.set(row, {"zone": f"z{row % 3}", "host": f"n{row}", **rack})
    return labels


@given(steps=steps, few=st.sampled_from([0, 3, 64]))
def test_a_counter_of_few_rows_says_what_one_of_all_rows_says(steps: list[tuple[str, int | str]], few: int) -> None:
    before, pod_counter._FEW_ROWS = pod_counter._FEW_ROWS, few
    try:
        labels = labelled()
        ours, theirs = FewRows(labels), PodCounter(np.zeros(64, np.int64), labels)
        for what, which in steps:
            _step(ours, theirs, labels, what, which)
            assert (ours.total, ours.version, ours.max_per_row) == (theirs.total, theirs.version, theirs.max_per_row)
            for key in KEYS:
                assert ours.by_domain(key).tolist() == theirs.by_domain(key).tolist()
                assert ours.any_in_domain(key) == theirs.any_in_domain(key)
                _same_sums(ours, theirs, key)
    finally:
        pod_counter._FEW_ROWS = before


def _step(ours: PodCounter, theirs: PodCounter, labels: LabelColumns, what: str, which: int | str) -> None:
    match what, which:
        case "ask", str(key):
            ours.by_domain(key)
        case "relabel", int(row):
            labels.set(row, {"zone": "moved"})
            ours.relabelled()
            theirs.relabelled()
        case _, int(row):
            delta = 1 if what == "add" else -1
            if delta > 0 or theirs.rows[row]:
                flips = ours.presence_version, theirs.presence_version
                ours.add(row, delta)
                theirs.add(row, delta)
                # All domains were asked about, so that both flip together.
                assert ours.presence_version - flips[0] == theirs.presence_version - flips[1]
                assert ours.steps_since(ours.version) == []


def _same_sums(ours: PodCounter, theirs: PodCounter, key: str) -> None:
    size = len(theirs.by_domain(key))
    some, all_of_them = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    ours.mark(key, some)
    theirs.mark(key, all_of_them)
    assert some.tolist() == all_of_them.tolist()
    mine, sums = np.full(size, 7), np.full(size, 7)
    ours.pour(key, -3, mine)
    theirs.pour(key, -3, sums)
    assert mine.tolist() == sums.tolist()
