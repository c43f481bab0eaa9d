"""Columns of labels: which are read, which are dropped, and what a key costs that no row has."""

import numpy as np
import pytest

from kubenexus.api.selectors import Operator, Requirement, parse_int64
from kubenexus.state import labels
from kubenexus.state.labels import LabelColumns, matching

ROWS = 20


@pytest.fixture
def columns() -> LabelColumns:
    """Twenty rows with a name and a key of their own, and one that all have."""
    made = LabelColumns(64)
    for row in range(ROWS):
        made.set(row, {"name": f"n{row}", f"own-{row}": "x", "all": str(row % 3)})
    made.reads = 0
    return made


def test_a_key_that_no_row_has_is_not_read_and_drops_nothing(
    columns: LabelColumns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "_MOST_COLUMNS", 4)
    monkeypatch.setattr(labels, "_LEAST_COLUMNS", 4)
    known = columns.column("all")
    for i in range(1_000):
        assert not columns.column(f"absent-{i}").codes.any()
    assert columns.column("all") is known
    assert columns.reads == 1


def test_a_key_is_read_when_a_first_row_has_it_and_is_another_column_then(columns: LabelColumns) -> None:
    nowhere = columns.column("late")
    columns.set(3, {"late": "v"})
    late = columns.column("late")
    assert late is not nowhere
    assert late.codes[:ROWS].tolist() == [0, 0, 0, 1] + [0] * 16
    columns.set(3, {})
    assert not columns.column("late").codes.any()


def test_the_column_that_goes_is_the_one_not_asked_for_the_longest(
    columns: LabelColumns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "_MOST_COLUMNS", 4)
    monkeypatch.setattr(labels, "_LEAST_COLUMNS", 4)
    for key in ("own-0", "own-1", "own-2", "own-3", "own-0", "own-4"):
        columns.column(key)
    assert columns.reads == 5
    for key in ("own-0", "own-2", "own-3", "own-4"):
        columns.column(key)
    assert columns.reads == 5, "only own-1 had to go"
    columns.column("own-1")
    assert columns.reads == 6


def test_columns_follow_rows_that_change_however_many_keys_there_are(columns: LabelColumns) -> None:
    before = {key: columns.column(key) for key in ("name", "all", "own-5")}
    columns.set(5, {"name": "other", "new": "y"})
    assert {key: columns.column(key) for key in before} == before
    assert before["name"].values.names[before["name"].codes[5]] == "other"
    assert before["all"].codes[5] == before["own-5"].codes[5] == 0
    assert [columns.rows_with(key) for key in ("name", "all", "own-5", "new")] == [ROWS, ROWS - 1, 0, 1]


def test_columns_take_no_more_bytes_than_they_may(columns: LabelColumns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_LEAST_COLUMNS", 2)
    monkeypatch.setattr(labels, "_MAX_BYTES", 5 * 4 * 64)
    for i in range(ROWS):
        columns.column(f"own-{i}")
    reads = columns.reads
    for i in range(ROWS - 5, ROWS):
        columns.column(f"own-{i}")
    assert columns.reads == reads
    columns.column("own-0")
    assert columns.reads == reads + 1


@pytest.mark.parametrize(
    ("op", "number", "expected"),
    [
        pytest.param(Operator.GT, 1, [2], id="greater"),
        pytest.param(Operator.LT, 2, [0, 1], id="less"),
        pytest.param(Operator.GT, -(2**63), [0, 1, 2], id="than the least there is"),
        pytest.param(Operator.GT, None, [], id="than nothing"),
    ],
)
def test_numbers_are_compared_as_numbers_and_each_value_is_read_once(
    op: Operator, number: int | None, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = LabelColumns(64)
    for row, value in enumerate(("0", "+1", "2", "two", "", "9" * 30)):
        made.set(row, {"k": value})
    column, read = made.column("k"), list[str]()

    def parse(text: str) -> int | None:
        read.append(text)
        return parse_int64(text)

    monkeypatch.setattr(labels, "parse_int64", parse)
    for _ in range(100):
        where = matching(Requirement("k", op, (), number), column.codes[:7], column)
        assert where.nonzero()[0].tolist() == expected
    assert len(read) == 6


def test_a_column_that_no_rule_needs_any_more_does_not_keep_every_value_that_a_row_ever_had() -> None:
    columns = LabelColumns(64)
    columns.set(0, {"job": "first"})
    columns.column("job")
    kept = []
    for number in range(2_000):
        columns.set(0, {"job": f"value-{number}"})
        kept.append(sum(len(column.values) for column in columns._columns.values()))
    assert max(kept) < 300
    column = columns.column("job")
    assert column.values.names[column.codes[0]] == "value-1999"


def test_a_column_is_read_again_only_after_as_many_new_values_as_it_has_rows() -> None:
    columns = LabelColumns(1024)
    for row in range(1_000):
        columns.set(row, {"name": f"n{row}"})
    for number in range(4_000):
        columns.set(number % 1_000, {"name": f"other-{number}"})
        assert len(columns.column("name").values) <= 256 + 2 * 1_000
    assert columns.reads <= 4


def test_a_key_of_few_rows_is_read_from_these_however_many_rows_there_are() -> None:
    rows, keys = 4_000, 24
    columns = LabelColumns(4_096)
    for row in range(rows):
        columns.set(row, {"app": f"a{row % 50}", "team": "x", "version": f"v{row % 7}"})
    columns.set(7, {f"own-{i}": "x" for i in range(keys)})
    columns.set(9, {"own-3": "y"})
    columns.rows_read = 0
    for i in range(keys):
        column = columns.column(f"own-{i}")
        assert np.flatnonzero(column.codes).tolist() == ([7, 9] if i == 3 else [7])
    # All rows for a key whose two bits are those of other keys by chance; one in 450 is.
    assert columns.rows_read <= 4 * rows, "not each row for each key"


def test_the_column_of_a_common_key_is_there_before_it_is_needed_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_MOST_COLUMNS", 4)
    monkeypatch.setattr(labels, "_LEAST_COLUMNS", 4)
    columns = LabelColumns(64, always=("owner",), keep_common=True)
    for row in range(1_000):
        if row >= 64 and row & (row - 1) == 0:
            columns.grow(2 * row)
        columns.set(row, {"all": f"v{row % 3}", "owner": f"o{row}", f"own-{row}": "x"})
    assert columns.rows_read < 200, "when it became common"
    common, owners = columns.column("all"), columns.column("owner")
    for row in range(1_000):
        columns.column(f"own-{row}")
    assert columns.column("all") is common
    assert columns.column("owner") is owners
    assert [common.values.names[code] for code in common.codes[:1_000]] == [f"v{row % 3}" for row in range(1_000)]


def test_no_more_common_keys_are_kept_than_may_be_and_only_while_they_are_common() -> None:
    columns = LabelColumns(1_024, keep_common=True)
    many = {f"k{i}": "x" for i in range(3 * labels.MOST_KEPT)}
    for row in range(100):
        columns.set(row, many)
    assert len(columns._columns) == labels.MOST_KEPT
    for row in range(100):
        columns.set(row, {})
    columns.grow(2_048)
    for row in range(1_000):
        columns.set(row, {"late": "x"})
    columns.reads = 0
    assert columns.column("late").codes.sum() == 1_000
    assert not columns.reads


def test_a_column_that_is_kept_forgets_values_without_looking_at_rows() -> None:
    columns = LabelColumns(64, always=("owner",))
    for number in range(5_000):
        columns.set(number % 8, {"owner": f"o{number}"})
        assert len(columns.column("owner").values) < 300
    column = columns.column("owner")
    assert [column.values.names[code] for code in column.codes[:9]] == [f"o{n}" for n in range(4_992, 5_000)] + [""]
    assert not columns.reads
    assert column.values.find("o4995") == column.codes[3]
