"""Durations are read and written as Go does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.config.durations import Duration


@pytest.mark.parametrize(
    ("text", "nanoseconds", "written"),
    [
        ("0", 0, "0s"),
        ("-0", 0, "0s"),
        ("0s", 0, "0s"),
        ("15s", 15 * 10**9, "15s"),
        ("+5s", 5 * 10**9, "5s"),
        ("-1.5h", -5400 * 10**9, "-1h30m0s"),
        ("10m", 600 * 10**9, "10m0s"),
        ("1h0m0.5s", 3600_500_000_000, "1h0m0.5s"),
        ("1.000000001s", 10**9 + 1, "1.000000001s"),
        (".5s", 500_000_000, "500ms"),
        ("1.s", 10**9, "1s"),
        ("3us", 3000, "3µs"),
        ("1500ns", 1500, "1.5µs"),
        ("7ns", 7, "7ns"),
        ("9223372036854775807ns", 2**63 - 1, "2562047h47m16.854775807s"),
    ],
)
def test_go_durations(text: str, nanoseconds: int, written: str) -> None:
    assert Duration.of(text).nanoseconds == nanoseconds
    assert str(Duration.of(text)) == written


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'time: invalid duration ""'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("15", 'time: missing unit in duration "15"'),
        ("1h30", 'time: missing unit in duration "1h30"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        ("--1s", 'time: invalid duration "--1s"'),
        ("1..5s", 'time: missing unit in duration "1..5s"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("٣s", 'time: invalid duration "٣s"'),
    ],
)
def test_what_is_no_duration_is_said_in_gos_words(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^time: ") as refused:
        Duration.of(text)
    assert str(refused.value) == problem


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_what_is_written_is_read_again(nanoseconds: int) -> None:
    assert Duration.of(str(Duration(nanoseconds))) == Duration(nanoseconds)


def test_durations_have_an_order_and_seconds() -> None:
    assert Duration.of("2s") < Duration.of("1m")
    assert Duration.of("1m") == Duration.of("60s")
    assert Duration.of("1500ms").seconds == 1.5
    assert not Duration(0)
    assert repr(Duration.of("90s")) == "Duration.of('1m30s')"
    assert len({Duration.of("1m"), Duration.of("60s")}) == 1
