"""Quantities against exact fractions, and the places where upstream is odd."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.quantity import INT64_MAX, Quantity, read_quantity, to_milli, to_nano, to_units
from kubenexus.base.errors import Malformed
from tests.api.oracle import steady

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
EXPONENTS = {f"{e}{sign}{n}": int(f"{sign}{n}") for e in "eE" for sign in ("", "+", "-") for n in (0, 1, 3, 7, 12, 30)}

digits = st.text("0123456789", min_size=1, max_size=25)
suffixes = st.sampled_from([*DECIMAL, *BINARY, *EXPONENTS])
signs = st.sampled_from(["", "+", "-"])


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Fraction, int]:
    """A text, the number it stands for, and the most that its format holds (in nano)."""
    sign, whole, fraction, suffix = draw(signs), draw(digits), draw(st.just("") | digits), draw(suffixes)
    value = Fraction(int(whole + fraction), 10 ** len(fraction))
    value *= Fraction(2) ** BINARY[suffix] if suffix in BINARY else Fraction(10) ** (DECIMAL | EXPONENTS)[suffix]
    most = INT64_MAX * 10**9 if suffix in BINARY else 10**1009
    return f"{sign}{whole}{'.' if fraction else ''}{fraction}{suffix}", -value if sign == "-" else value, most


def away(value: Fraction) -> int:
    return ceil(abs(value)) * (1 if value >= 0 else -1)


def within_int64(value: int) -> int:
    return max(-INT64_MAX - 1, min(value, INT64_MAX))


@steady
@given(written())
def test_a_quantity_is_its_fraction_rounded_away_from_zero_to_nano(case: tuple[str, Fraction, int]) -> None:
    text, value, most = case
    quantity = Quantity.parse(text)
    exact = max(-most, min(away(value * 10**9), most))
    assert quantity.nano == exact
    assert quantity.units() == to_units(text) == within_int64(away(Fraction(exact, 10**9)))
    assert quantity.milli() == to_milli(text) == within_int64(away(Fraction(exact, 10**6)))
    assert quantity.sign == (exact > 0) - (exact < 0)


@steady
@given(written())
def test_the_canonical_form_is_the_same_number(case: tuple[str, Fraction, int]) -> None:
    quantity = Quantity.parse(case[0])
    if abs(quantity.nano) < 10**30:  # from 10^21 units on Kubernetes has no suffix left, and prints a smaller number
        again = Quantity.parse(quantity.canonical())
        assert again.nano == quantity.nano
        assert again.canonical() == quantity.canonical()


@steady
@given(st.lists(written(), max_size=5))
def test_sums_are_exact(cases: list[tuple[str, Fraction, int]]) -> None:
    parsed = [Quantity.parse(text) for text, _, _ in cases]
    assert sum(parsed, start=Quantity()).nano == sum(quantity.nano for quantity in parsed)


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        pytest.param("1Gi", "1G", "2073741824", id="the left side decides the format"),
        pytest.param("0", "1Gi", "1Gi", id="unless it is zero"),
        pytest.param("1Gi", "0", "1Gi", id="zero on the right changes nothing"),
        pytest.param("1Gi", "500m", "1073741824500m", id="a binary sum that is not whole prints in decimals"),
        pytest.param("+1", "1", "2", id="the text that was read is forgotten"),
    ],
)
def test_sums_print_like(left: str, right: str, total: str) -> None:
    assert (Quantity.parse(left) + Quantity.parse(right)).canonical() == total


@steady
@given(written(), written())
def test_order_is_that_of_the_numbers(left: tuple[str, Fraction, int], right: tuple[str, Fraction, int]) -> None:
    a, b = Quantity.parse(left[0]), Quantity.parse(right[0])
    assert (a < b, a <= b, a == b, a >= b, a > b) == (
        a.nano < b.nano,
        a.nano <= b.nano,
        a.nano == b.nano,
        a.nano >= b.nano,
        a.nano > b.nano,
    )
    assert (hash(a) == hash(b)) or a != b


@steady
@given(st.text("0123456789.+-eEinumkKMGTP ", max_size=12))
def test_any_text_is_a_quantity_or_malformed(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except Malformed:
        return
    assert Quantity.parse(text) == quantity
    assert -INT64_MAX - 1 <= to_units(text) <= INT64_MAX


@pytest.mark.parametrize(
    ("text", "canonical", "milli"),
    [
        pytest.param("100m", "100m", 100, id="as written"),
        pytest.param("0.1", "100m", 100, id="a fraction becomes milli"),
        pytest.param("1.5Gi", "1536Mi", 1536 * 2**20 * 1000, id="a binary fraction moves down a step"),
        pytest.param("0.5Ki", "512", 512000, id="below 1024 a binary number has no suffix"),
        pytest.param("1e3", "1e3", 10**6, id="an exponent stays an exponent"),
        pytest.param("0.0000000001", "1n", 1, id="less than a nano is a nano"),
        pytest.param("1000", "1k", 10**6, id="thousands get a suffix"),
        pytest.param("+1", "+1", 1000, id="a tidy text is kept as it was, sign and all"),
        pytest.param("m", "0", 0, id="no digits at all is zero"),
        pytest.param("-", "0", 0, id="a bare sign is zero"),
        pytest.param("5.Ki", "5.Ki", 5120000, id="a point may end the number"),
        pytest.param("1e4294967296", "1e4294967296", 1000, id="exponents keep their low 32 bits"),
        pytest.param(3, "3", 3000, id="a JSON integer"),
        pytest.param(0.5, "500m", 500, id="a JSON number"),
        pytest.param(1e-7, "100e-9", 1, id="a JSON number that Python writes with an exponent"),
    ],
)
def test_oddities(text: str | float, canonical: str, milli: int) -> None:
    assert Quantity.parse(text).canonical() == canonical
    assert to_milli(text) == milli


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "NaN",
        "Inf",
        "-Infinity",
        "1 ",
        "1x",
        "1.2.3",
        "0x10",
        "1_000",
        "1,5",
        "\uff11",
        "1e",
        "1e1.5",
        "5mi",
        "1Kib",
        "1e99999999999999999999",
        "Pi",
        "Ei",
        "e-12",
        "--1",
        "1-",
        "\n1",
        "1\n",
        True,
        float("nan"),
        float("inf"),
        None,
        [],
        {},
    ],
)
def test_what_is_no_quantity_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        Quantity.parse(text)


def test_objects_may_have_blanks_around_a_quantity_as_in_go() -> None:
    assert (to_units(" 1Ki\n"), to_milli(" 1 "), read_quantity("\t2").units()) == (1024, 1000, 2)


@pytest.mark.parametrize("text", ["1e30", "9" * 40, "9" * 40 + "Ei", "1e2147483647", "9" * 5000, 10**40, 1e300])
def test_beyond_int64_saturates(text: str | float) -> None:
    assert to_units(text) == to_milli(text) == INT64_MAX
    assert to_nano(text) == INT64_MAX * 10**9


@pytest.mark.parametrize("text", ["-1e30", "-" + "9" * 40, "-1e2147483647", -(10**40), -1e300])
def test_and_so_it_does_below_zero(text: str | float) -> None:
    assert to_units(text) == to_milli(text) == -INT64_MAX - 1
    assert to_nano(text) == -INT64_MAX * 10**9


def test_the_message_shows_what_was_wrong_but_not_a_megabyte_of_it() -> None:
    with pytest.raises(Malformed, match="'53K' is not a quantity: no such suffix 'K'"):
        Quantity.parse("53K")
    with pytest.raises(Malformed) as raised:
        Quantity.parse("z" * 10**6)
    assert len(str(raised.value)) < 500
