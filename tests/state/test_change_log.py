"""The log of changed rows: what a reader is told who last looked at some mark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.state import change_log
from kubenexus.state.change_log import ChangeLog


@given(rows=st.lists(st.integers(0, 200), max_size=60), data=st.data())
def test_a_reader_is_told_each_row_that_changed_since_and_each_once(rows: list[int], data: st.DataObject) -> None:
    log = ChangeLog()
    for row in rows:
        log.record(row)
    mark = data.draw(st.integers(0, len(rows)))
    assert told(log, mark) == sorted(set(rows[mark:]))


def told(log: ChangeLog, mark: int) -> list[int] | None:
    found = log.rows_since(mark)
    return None if found is None else sorted(found.tolist())


def test_the_mark_counts_changes() -> None:
    log = ChangeLog()
    for row in (5, 5, 7):
        log.record(row)
    assert (log.mark, told(log, 3), told(log, 1)) == (3, [], [5, 7])


@pytest.mark.parametrize("length", [7, 8, 9, 12, 13, 40])
def test_what_was_dropped_is_not_told_and_the_rest_is(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "LIMIT", 4)
    log = ChangeLog()
    for row in range(length):
        log.record(row)
    answers = [told(log, mark) for mark in range(length + 1)]
    forgotten = answers.count(None)
    assert answers == [None] * forgotten + [list(range(mark, length)) for mark in range(forgotten, length + 1)]
    assert length - forgotten >= min(length, 4), "the last changes are always known"
