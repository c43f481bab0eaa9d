"""Moments are read as they were written, and nothing that anybody writes brings the reader down."""

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.base.timestamps import format_micro_time, format_time, parse_timestamp

EIGHT = 1_794_816_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-11-16T08:00:00Z", EIGHT),
        ("2026-11-16T08:00:00.5Z", EIGHT + 0.5),
        ("2026-11-16T08:00:00.123456Z", EIGHT + 0.123456),
        ("2026-11-16T08:00:00.123456789Z", EIGHT + 0.123456),
        ("2026-11-16T08:00:00+00:00", EIGHT),
        ("2026-11-16T09:30:00+01:30", EIGHT),
        ("2026-11-15T20:00:00-12:00", EIGHT),
        ("0001-01-01T00:00:00+23:59", -62_135_683_140.0),
        ("9999-12-31T23:59:59-23:59", 253_402_387_139.0),
    ],
)
def test_a_moment_is_read(text: str, seconds: float) -> None:
    assert parse_timestamp(text, None) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1794816000",
        "2026-11-16T08:00:60Z",
        "2026-11-16T24:00:01Z",
        "2026-13-16T08:00:00Z",
        "0000-01-01T00:00:00Z",
        "99999-01-01T00:00:00Z",
        "2026-11-16T08:00:00+99:00",
        "2026-11-16T08:00:00",
        "2026-11-16",
        "0001-01-01T00:00:00",
        "9999-12-31T23:59:59",
        "\ud800",
        "2026\ud80011-16T08:00:00Z",
        "٢٠٢٦-11-16T08:00:00Z",
    ],
)
def test_what_is_no_moment_is_whatever_the_caller_wants(text: str) -> None:
    assert parse_timestamp(text, None) is None
    assert parse_timestamp(text, 7.0) == 7.0


@given(st.text() | st.from_regex(r"\A\d{1,5}-\d\d?-\d\d?[Tt ]\d\d?:\d\d:\d\d(\.\d*)?(Z|[+-]\d\d:\d\d)?\Z"))
def test_nothing_raises(text: str) -> None:
    assert isinstance(parse_timestamp(text, None), float | None)


@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_what_is_written_is_read_again(second: int) -> None:
    assert parse_timestamp(format_time(second), None) == second


@given(st.integers(0, 4_102_444_800_000_000))
def test_not_a_microsecond_is_lost(micros: int) -> None:
    assert parse_timestamp(format_micro_time(micros / 1e6), None) == pytest.approx(micros / 1e6, rel=0, abs=1e-6)


def test_the_zone_of_the_machine_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert parse_timestamp("2026-11-16T08:00:00Z", None) == EIGHT
        assert format_time(EIGHT) == "2026-11-16T08:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()
