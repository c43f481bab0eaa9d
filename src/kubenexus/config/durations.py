"""Durations as Go writes them: `15s`, `1m30s`, `1.5h`. In whole nanoseconds, so that nothing is rounded."""

import functools
import re
from typing import Final

from kubenexus.api.selectors import quote

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the sign for micro, and below it the Greek letter: they look alike and both are in use
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]*)", re.ASCII)
_MAX_NANOSECONDS: Final = 2**63 - 1


@functools.total_ordering
class Duration:
    """A number of nanoseconds. A plain class and not a Struct, because in a document it is a text."""

    __slots__ = ("nanoseconds",)

    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    @classmethod
    def of(cls, text: str) -> "Duration":
        """Parses a duration. Raises ValueError with Go's text."""
        unsigned = text[1:] if text[:1] in ("+", "-") else text
        if unsigned == "0":
            return cls(0)
        amount = sum(_amount(part, text) for part in _parts(unsigned, text))
        if amount > _MAX_NANOSECONDS:
            raise ValueError(f"time: invalid duration {quote(text)}")
        return cls(-amount if text.startswith("-") else amount)

    @property
    def seconds(self) -> float:
        return self.nanoseconds / 10**9

    def __str__(self) -> str:
        sign, amount = ("-" if self.nanoseconds < 0 else ""), abs(self.nanoseconds)
        if amount < 10**9:
            return sign + _below_a_second(amount)
        minutes, rest = divmod(amount, 60 * 10**9)
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
        return f"{sign}{text}{_decimal(rest, 9)}s"

    def __repr__(self) -> str:
        return f"Duration.of({str(self)!r})"

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanoseconds == other.nanoseconds

    def __lt__(self, other: "Duration") -> bool:
        return self.nanoseconds < other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


def _parts(unsigned: str, text: str) -> list[re.Match[str]]:
    """Returns matches for `1m` and `30s` of `1m30s`. Raises ValueError unless they cover the whole text."""
    parts, place = [], 0
    while place < len(unsigned):
        part = _PART.match(unsigned, place)
        if part is None or not (part[1] or part[2]):
            break
        parts.append(part)
        place = part.end()
    if not parts or place < len(unsigned) or len(text) > 100:
        raise ValueError(f"time: invalid duration {quote(text)}")
    return parts


def _amount(part: re.Match[str], text: str) -> int:
    whole, fraction, unit = part[1] or "0", part[2] or "", part[3]
    if not unit:
        raise ValueError(f"time: missing unit in duration {quote(text)}")
    if unit not in _UNITS:
        raise ValueError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
    return int(whole + fraction) * _UNITS[unit] // int(10 ** len(fraction))


def _below_a_second(amount: int) -> str:
    if not amount:
        return "0s"
    if amount < 10**3:
        return f"{amount}ns"
    return f"{_decimal(amount, 3)}µs" if amount < 10**6 else f"{_decimal(amount, 6)}ms"


def _decimal(amount: int, places: int) -> str:
    """Returns 1.5 for 1500 with 3 places."""
    whole, rest = divmod(amount, 10**places)
    return f"{whole}.{rest:0{places}}".rstrip("0") if rest else str(whole)
