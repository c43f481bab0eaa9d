"""Quantities: `100m`, `1.5Gi`, `2e3`, exact and equal to Kubernetes' to the last digit.

A quantity is a whole number of *nano* units, Kubernetes' finest grain. So sums and comparisons are integer arithmetic,
and nothing is rounded before the end. The format is kept only to print the number as its author wrote it.

One intended difference: Kubernetes wraps around (or computes for minutes) when a number leaves 64 bits. Ours saturates,
since a pod that requests too much should merely not fit. A number of more than a thousand digits becomes 10^1000, which
no node has either; so a text of a megabyte costs about as much as reading it.
"""

import enum
import functools
import math
import re
from typing import Final

import msgspec

from kubenexus.api.core import QuantityText
from kubenexus.api.selectors import parse_int64
from kubenexus.base.errors import Malformed, truncated

INT64_MAX: Final = 2**63 - 1
NANO: Final = 10**9
NANO_PER_MILLI: Final = 10**6
NANO_CAP: Final = INT64_MAX * NANO

_LARGEST_EXPONENT: Final = 1000
_LARGEST_NANO: Final = 10**_LARGEST_EXPONENT * NANO
_BINARY_CAP_DIGITS: Final = 30  # more digits than this are beyond int64, where binary quantities are capped
_SHORT: Final = 20
_KEPT_LENGTH: Final = 64  # longer texts are neither cached nor kept: any client could fill the memory with them


class Format(enum.Enum):
    """How a quantity prints itself: 12M, 12Mi or 12e6."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


# Possessive (`*+`), so that a hostile text of a megabyte is read once and never backtracked into.
_SHAPE: Final = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[+-]?+[0-9]*+)")
_DIGIT: Final = re.compile(r"[0-9]")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
# What the API server stores: no sign, no fraction. 1 us to read; the whole grammar takes 7.
_AS_STORED: Final = re.compile(r"([0-9]{1,18}+)([a-zA-Z]{0,2}+[0-9]{0,2}+)")
_NANO_OF: Final[dict[str, int]] = {
    **{suffix: 10 ** (9 + exponent) for suffix, exponent in _DECIMAL_SUFFIXES.items()},
    **{suffix: NANO << power for suffix, power in _BINARY_SUFFIXES.items()},
    **{f"e{exponent}": 10 ** (9 + exponent) for exponent in range(0, 19, 3)},
}
_BINARY_NAMES: Final = ("", *_BINARY_SUFFIXES)


class Quantity(msgspec.Struct, frozen=True, gc=False, eq=False):
    """An exact amount. `text` is set if the text that was read is already the canonical form."""

    nano: int = 0
    format: Format = Format.DECIMAL_SI
    text: str = ""

    @classmethod
    def parse(cls, value: QuantityText) -> "Quantity":
        """Parses a quantity as `resource.ParseQuantity` does; a JSON number counts as its text. Raises Malformed."""
        if isinstance(value, str):
            return _parse_text(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Malformed(f"a quantity must be a string or a number, not {type(value).__name__}")
        if isinstance(value, int):
            return cls(_bounded(value * NANO))
        if not math.isfinite(value):
            raise Malformed(f"{value} is not a quantity")
        return _parse_text(repr(value))

    @property
    def sign(self) -> int:
        return (self.nano > 0) - (self.nano < 0)

    def units(self) -> int:
        """Returns whole units, rounded away from zero (Kubernetes' `Value()`) and kept within int64."""
        return _away_from_zero(self.nano, NANO)

    def milli(self) -> int:
        """Returns thousandths, rounded away from zero (Kubernetes' `MilliValue()`) and kept within int64."""
        return _away_from_zero(self.nano, NANO_PER_MILLI)

    def canonical(self) -> str:
        """Returns the shortest exact form in the format it was written in (Kubernetes' `String()`)."""
        if self.text or not self.nano:
            return self.text or "0"
        if self.format is Format.BINARY_SI and abs(self.nano) >= 1024 * NANO and self.nano % NANO == 0:
            return _print_binary(self.nano // NANO)
        return _print_decimal(self.nano, self.format)

    def __add__(self, other: "Quantity") -> "Quantity":
        # The sum has the format of its left side, unless that is zero.
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: "Quantity") -> bool:
        return self.nano > other.nano

    def __ge__(self, other: "Quantity") -> bool:
        return self.nano >= other.nano


def to_nano(text: QuantityText) -> int:
    """Returns nano units within int64 units, for sums. Cached; surrounding blanks are allowed as in JSON."""
    return _nano(text) if type(text) is not str or len(text) <= _KEPT_LENGTH else _nano.__wrapped__(text)


def to_milli(text: QuantityText) -> int:
    """Returns thousandths, rounded away from zero, within int64. Cached."""
    return _milli(text) if type(text) is not str or len(text) <= _KEPT_LENGTH else _milli.__wrapped__(text)


def to_units(text: QuantityText) -> int:
    """Returns units, rounded away from zero, within int64. Cached."""
    return _units(text) if type(text) is not str or len(text) <= _KEPT_LENGTH else _units.__wrapped__(text)


def read_quantity(text: QuantityText) -> Quantity:
    """Parses a quantity from a JSON object, where Kubernetes allows blanks around it."""
    return Quantity.parse(text.strip() if isinstance(text, str) else text)


@functools.lru_cache(maxsize=8192)
def _nano(text: QuantityText) -> int:
    stored = _AS_STORED.fullmatch(text) if isinstance(text, str) else None
    unit = _NANO_OF.get(stored[2]) if stored else None
    if stored and unit:
        return min(int(stored[1]) * unit, NANO_CAP)
    return max(-NANO_CAP, min(read_quantity(text).nano, NANO_CAP))


@functools.lru_cache(maxsize=8192)
def _milli(text: QuantityText) -> int:
    return read_quantity(text).milli()


@functools.lru_cache(maxsize=8192)
def _units(text: QuantityText) -> int:
    return _as_memory_is_written(text) if isinstance(text, str) and len(text) < _SHORT else read_quantity(text).units()


def _as_memory_is_written(text: str) -> int:
    """Parses `512Mi` or `2Gi` without the whole grammar; falls back to it for other texts."""
    power, digits = _BINARY_SUFFIXES.get(text[-2:]), text[:-2]
    if power is None or not digits.isdigit() or not digits.isascii():
        return read_quantity(text).units()
    return min(int(digits) << power, INT64_MAX)


def ceil_within_int64(nano: int, grain: int) -> int:
    """Returns `nano` (not negative) in grains of `grain` nano, rounded up, at most the largest int64."""
    grains = -(-nano // grain)
    return grains if grains <= INT64_MAX else INT64_MAX


def _away_from_zero(nano: int, grain: int) -> int:
    return ceil_within_int64(nano, grain) if nano >= 0 else max(nano // grain, -INT64_MAX - 1)


def _bounded(nano: int) -> int:
    return max(-_LARGEST_NANO, min(nano, _LARGEST_NANO))


def _parse_text(text: str) -> Quantity:
    shape = _SHAPE.fullmatch(text) if text else None
    if shape is None:
        raise Malformed(f"{truncated(text)!r} is not a quantity: a number with a suffix such as m, k, M, Ki, Mi or e3")
    sign, whole, fraction, suffix = shape.group(1, 2, 3, 4)
    # An empty whole part counts as one digit 0 in upstream's count of digits, too.
    if suffix in _BINARY_SUFFIXES:
        quantity = _binary(text, whole or "0", fraction or "", _BINARY_SUFFIXES[suffix], shape.start(4))
    else:
        quantity = _decimal(text, whole or "0", fraction or "", suffix, shape.start(4))
    return quantity if sign != "-" else Quantity(-quantity.nano, quantity.format, quantity.text)


def _decimal(text: str, whole: str, fraction: str, suffix: str, end: int) -> Quantity:
    exponent = _decimal_exponent(text, suffix)
    format = Format.DECIMAL_SI if suffix in _DECIMAL_SUFFIXES else Format.DECIMAL_EXPONENT
    digits = whole + fraction
    nano = _scaled(digits, len(whole) + exponent)
    # Upstream takes a shortcut if the number fits int64, and then may keep the text it read as the canonical one.
    if len(digits) <= 18 and exponent - len(fraction) >= -9:
        tidy = (exponent - len(fraction)) % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        return Quantity(nano, format, text if tidy and len(text) <= _KEPT_LENGTH else "")
    _need_a_digit(text, end)
    return Quantity(nano, format)


def _decimal_exponent(text: str, suffix: str) -> int:
    known = _DECIMAL_SUFFIXES.get(suffix)
    if known is not None:
        return known
    written = _EXPONENT.fullmatch(suffix)
    exponent = parse_int64(written.group(1)) if written else None
    if exponent is None:
        raise Malformed(f"{truncated(text)!r} is not a quantity: no such suffix {truncated(suffix)!r}")
    # Kubernetes keeps the low 32 bits of an exponent, and so do we: 1e4294967296 is 1.
    return (exponent + 2**31) % 2**32 - 2**31


def _scaled(digits: str, point: int) -> int:
    """Returns `0.digits * 10^point` in nano units, rounded up. Converts only the digits that can matter."""
    significant = digits.lstrip("0")
    keep = point - (len(digits) - len(significant)) + 9
    if not significant:
        return 0
    if keep > _LARGEST_EXPONENT + 9:
        return _LARGEST_NANO
    if keep >= len(significant):
        return int(significant) * _power_of_ten(keep - len(significant))
    kept, dropped = (significant[:keep], significant[keep:]) if keep > 0 else ("0", significant)
    return int(kept) + bool(dropped.strip("0"))


def _binary(text: str, whole: str, fraction: str, power: int, end: int) -> Quantity:
    if not fraction and 15 - len(whole) - power * 3 // 10 - 1 >= 0:
        number = int(whole)
        tidy = number & 7 and len(text) <= _KEPT_LENGTH
        return Quantity((number << power) * NANO, Format.BINARY_SI, text if tidy else "")
    _need_a_digit(text, end)
    nano = NANO_CAP if len(whole) > _BINARY_CAP_DIGITS else min(_times_power(whole, fraction, power), NANO_CAP)
    # Below one, a binary suffix would have to round; Kubernetes then prints decimals, and keeps that format.
    return Quantity(nano, Format.BINARY_SI if nano == 0 or nano >= NANO else Format.DECIMAL_SI)


def _times_power(whole: str, fraction: str, power: int) -> int:
    """Returns `whole.fraction * 2^power` in nano units, rounded up."""
    kept, dropped = fraction[:1000], fraction[1000:]
    if dropped.strip("0"):
        kept += "1"  # for all digits cut off: enough to round up, too small to matter otherwise
    return -(-((int(whole + kept) << power) * NANO) // _power_of_ten(len(kept)))


def _power_of_ten(exponent: int) -> int:
    power: int = 10**exponent
    return power


def _need_a_digit(text: str, end: int) -> None:
    # Upstream's shortcut takes a missing number for 0 (`m` is zero milli), its long way does not (`Pi` is an error).
    if not _DIGIT.search(text, 0, end):
        raise Malformed(f"{truncated(text)!r} is not a quantity: it has no digits")


def _print_binary(units: int) -> str:
    step = 0
    while units % 1024 == 0:
        units //= 1024
        step += 1
    return f"{units}{_BINARY_NAMES[step] if step < len(_BINARY_NAMES) else ''}"


def _print_decimal(nano: int, format: Format) -> str:
    exponent = -9
    while nano % 1000 == 0:
        nano //= 1000
        exponent += 3
    if format is Format.DECIMAL_EXPONENT:
        return f"{nano}e{exponent}" if exponent else str(nano)
    # Kubernetes has no suffix beyond E and prints none there; the string is part of its API, so we do the same.
    return f"{nano}{_DECIMAL_NAMES.get(exponent, '')}"
