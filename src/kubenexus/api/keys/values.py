"""Types of values: they parse the text of a label or annotation, and describe valid texts for the manual.

Each type is a small frozen struct. `parse` raises Malformed with a sentence about what was expected; `describe` returns
the cell of the documentation page; `example` is shown there and parsed in the tests.
"""

import re
import sys
from typing import ClassVar, Literal, Protocol, TypeVar

import msgspec

from kubenexus.api import quantity
from kubenexus.base.errors import Malformed

T_co = TypeVar("T_co", covariant=True)

# Longer texts are cut when they are quoted: the message ends up in an event.
QUOTED = 40


def quoted(text: str) -> str:
    """Returns `text` for an error message: one line, of bounded length."""
    return repr(text if len(text) <= QUOTED else text[:QUOTED] + "...")


class ValueType(Protocol[T_co]):
    """The interface of all types of values."""

    # Whether an empty text is a value. For other types empty means unset: templates often leave a key without a value.
    blank_counts: ClassVar[bool]
    # The most characters of a text that is parsed: an annotation may have 256 Ki.
    longest: ClassVar[int]

    @property
    def example(self) -> str: ...

    def parse(self, text: str) -> T_co: ...

    def describe(self) -> str: ...


class Value(msgspec.Struct, frozen=True, gc=False):
    """The base of the types below."""

    blank_counts: ClassVar[bool] = False
    longest: ClassVar[int] = 512


class Text(Value, frozen=True, gc=False):
    """Any text: a name, an id."""

    example: str

    def parse(self, text: str) -> str:
        return text.strip()

    def describe(self) -> str:
        return f"text, e.g. `{self.example}`"


class Present(Value, frozen=True, gc=False):
    """A marker: only the presence of the key counts."""

    blank_counts: ClassVar[bool] = True
    longest: ClassVar[int] = sys.maxsize  # it is not parsed
    example: str = "any"

    def parse(self, text: str) -> bool:
        return True

    def describe(self) -> str:
        return "any; being there is enough"


class Bool(Value, frozen=True, gc=False):
    example: str = "true"

    def parse(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in ("true", "false"):
            raise Malformed(f"must be true or false, not {quoted(text)}")
        return word == "true"

    def describe(self) -> str:
        return "`true`, `false`"


class Int(Value, frozen=True, gc=False):
    """A whole number in decimal digits, within bounds."""

    least: int = 0
    most: int = 2**63 - 1
    example: str = "4"

    # At most 19 digits: what int64 holds, and never a megabyte for int() to parse.
    _shape: ClassVar[re.Pattern[str]] = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)

    def parse(self, text: str) -> int:
        digits = text.strip()
        if not self._shape.fullmatch(digits) or not self.least <= int(digits) <= self.most:
            raise Malformed(f"must be a {self.describe()}, not {quoted(text)}")
        return int(digits)

    def describe(self) -> str:
        # A bound that only keeps the number in an int32 is of no use to a reader.
        return f"whole number from {self.least}" + (f" to {self.most}" if self.most < 2**31 - 1 else "")


class OneOf(Value, frozen=True, gc=False):
    """One of a few words, in any case; `also` maps other spellings of a word to it."""

    words: tuple[str, ...]
    also: dict[str, str] = {}

    @property
    def example(self) -> str:
        return self.words[0]

    def parse(self, text: str) -> str:
        said = text.strip().lower()
        word = self.also.get(said, said)
        if word not in self.words:
            raise Malformed(f"must be one of {', '.join(self.words)}, not {quoted(text)}")
        return word

    def describe(self) -> str:
        words = ", ".join(f"`{word}`" for word in self.words)
        also = ", ".join(f"`{other}` = `{word}`" for other, word in self.also.items())
        return words + (f" ({also})" if also else "")


class QuantityValue(Value, frozen=True, gc=False):
    """A Kubernetes quantity, in bytes or in thousandths of a core."""

    unit: Literal["bytes", "milli"]
    example: str
    least: int = 0

    # In practice 80GB and 80GiB are written where Kubernetes knows only 80G and 80Gi; the meaning is clear.
    _spoken: ClassVar[re.Pattern[str]] = re.compile(r"(?<=[kMGTPE])(i?)B$")

    def parse(self, text: str) -> int:
        if self.unit == "milli":
            amount = quantity.to_milli(text)
        else:
            amount = quantity.to_units(self._spoken.sub(r"\1", text.strip()))
        if amount < 0:
            raise Malformed(f"must not be negative: {quoted(text)}")
        if amount < self.least:
            raise Malformed(f"must be at least {self.least}, not {quoted(text)}")
        return amount

    def describe(self) -> str:
        kind = "cpu quantity" if self.unit == "milli" else "quantity of bytes"
        return kind + (f" from {self.least}" if self.least else "") + f", e.g. `{self.example}`"


class DurationValue(Value, frozen=True, gc=False):
    """A time span as Kubernetes writes it, in whole seconds: `2h30m`, `90s`, or a plain number of seconds."""

    most: int
    example: str = "2h30m"

    _shape: ClassVar[re.Pattern[str]] = re.compile(
        r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,10})s?)?", re.ASCII
    )
    _units: ClassVar[tuple[int, ...]] = (86_400, 3600, 60, 1)

    def parse(self, text: str) -> int:
        found = self._shape.fullmatch(text.strip())
        parts = () if found is None else found.groups()
        seconds = sum(int(number) * unit for number, unit in zip(parts, self._units, strict=False) if number)
        if not 1 <= seconds <= self.most:
            raise Malformed(f"must be a {self.describe()}, not {quoted(text)}")
        return seconds

    def describe(self) -> str:
        return f"time span of 1s to {self.most // 86_400}d, e.g. `{self.example}`; a plain number is in seconds"
