"""A counter of few rows says what one of all rows says, before and after it has become one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.state import counters
from kubenexus.state.counters import Counter, FewRows
from kubenexus.state.labels import LabelColumns

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
    before, counters._FEW = counters._FEW, few
    try:
        labels = labelled()
        ours, theirs = FewRows(labels), Counter(np.zeros(64, np.int64), labels)
        for what, which in steps:
            _step(ours, theirs, labels, what, which)
            assert (ours.total, ours.version, ours.most) == (theirs.total, theirs.version, theirs.most)
            for key in KEYS:
                assert ours.domain(key).tolist() == theirs.domain(key).tolist()
                assert ours.anywhere(key) == theirs.anywhere(key)
                _same_sums(ours, theirs, key)
    finally:
        counters._FEW = before


def _step(ours: Counter, theirs: Counter, labels: LabelColumns, what: str, which: int | str) -> None:
    match what, which:
        case "ask", str(key):
            ours.domain(key)
        case "relabel", int(row):
            labels.set(row, {"zone": "moved"})
            ours.relabelled()
            theirs.relabelled()
        case _, int(row):
            delta = 1 if what == "add" else -1
            if delta > 0 or theirs.rows[row]:
                flips = ours.flips, theirs.flips
                ours.add(row, delta)
                theirs.add(row, delta)
                # All domains were asked about, so that both flip together.
                assert ours.flips - flips[0] == theirs.flips - flips[1]
                assert ours.since(ours.version) == []


def _same_sums(ours: Counter, theirs: Counter, key: str) -> None:
    size = len(theirs.domain(key))
    some, all_of_them = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    ours.mark(key, some)
    theirs.mark(key, all_of_them)
    assert some.tolist() == all_of_them.tolist()
    mine, sums = np.full(size, 7), np.full(size, 7)
    ours.pour(key, -3, mine)
    theirs.pour(key, -3, sums)
    assert mine.tolist() == sums.tolist()
