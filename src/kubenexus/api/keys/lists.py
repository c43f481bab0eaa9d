"""Values with a grammar of their own: lists, CPU sets, line rates, model sizes and prices."""

import re
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar

from kubenexus.api.keys.values import Value, ValueType, quoted
from kubenexus.base.errors import Malformed

T = TypeVar("T")

# Linux itself stops at 8,192 CPUs; the bound keeps a range such as 0-999999999 from filling the memory.
LAST_CPU = 8191
# Characters of groups of device numbers: 64 devices take 190. Each range of a longer text could be of 1,000 numbers.
_MAX_GROUPS = 512
_LONGEST_LIST = 16 << 10  # characters; the ids of 3,000 CPUs one by one


class Csv(Value, Generic[T], frozen=True, gc=False):
    """Several values separated by commas. Only an annotation can hold a comma."""

    longest: ClassVar[int] = _LONGEST_LIST
    of: ValueType[T]
    example: str

    def parse(self, text: str) -> tuple[T, ...]:
        return tuple(self.of.parse(item) for item in text.split(",") if item.strip())

    def describe(self) -> str:
        return f"list with commas, e.g. `{self.example}`"


class CpuList(Value, frozen=True, gc=False):
    """CPU ids as the kernel prints them, `0-15,32-47`. A label cannot hold a comma, so `_` and `.` separate, too."""

    longest: ClassVar[int] = _LONGEST_LIST
    example: str = "0-15_32-47"

    _item: ClassVar[re.Pattern[str]] = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)

    def parse(self, text: str) -> tuple[int, ...]:
        ids: list[int] = []
        for first, last in sorted(self._range(item) for item in re.split(r"[,_.]", text)):
            # Ranges may overlap; starting after the last id keeps the work bounded by LAST_CPU.
            ids.extend(range(max(first, ids[-1] + 1 if ids else 0), last + 1))
        return tuple(ids)

    def _range(self, item: str) -> tuple[int, int]:
        match = self._item.fullmatch(item.strip())
        if match is None:
            raise Malformed(f"must be CPU ids and ranges such as 0-15,32-47, not {quoted(item)}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last <= LAST_CPU:
            raise Malformed(f"a CPU range must rise and end at {LAST_CPU} or before, not {quoted(item)}")
        return first, last

    def describe(self) -> str:
        return f"CPU ids and ranges, e.g. `{self.example}` (`,` in an annotation, `_` or `.` in a label)"


class IndexGroups(Value, frozen=True, gc=False):
    """Groups of device numbers, `0-3_4-7`. In an annotation `;` may separate groups and `,` the members of one."""

    example: str = "0-3_4-7"

    _item: ClassVar[re.Pattern[str]] = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", re.ASCII)

    def parse(self, text: str) -> tuple[tuple[int, ...], ...]:
        if len(text) > _MAX_GROUPS:
            raise Malformed(f"must have at most {_MAX_GROUPS} characters")
        groups = tuple(self._group(group) for group in re.split(r"[_;]", text.strip()))
        members = [member for group in groups for member in group]
        if len(set(members)) != len(members):
            raise Malformed(f"must name each device once, not {quoted(text)}")
        return groups

    def _group(self, text: str) -> tuple[int, ...]:
        members: list[int] = []
        for item in re.split(r"[.,]", text):
            match = self._item.fullmatch(item.strip())
            if match is None or int(match[1]) > int(match[2] or match[1]):
                raise Malformed(f"must be groups of device numbers such as {self.example}, not {quoted(text)}")
            members += range(int(match[1]), int(match[2] or match[1]) + 1)
        return tuple(members)

    def describe(self) -> str:
        return f"groups of device numbers, e.g. `{self.example}` (`0.2_1.3` where they are not in a row)"


class Thousandths(Value, frozen=True, gc=False):
    """A part of one, above 0 and up to 1, with at most three decimals; as thousandths."""

    example: str = "0.5"

    _shape: ClassVar[re.Pattern[str]] = re.compile(r"(?:0?\.[0-9]{1,3}|0|1(?:\.0{1,3})?)", re.ASCII)

    def parse(self, text: str) -> int:
        match = self._shape.fullmatch(text.strip())
        parts = int(Fraction(text.strip()) * 1000) if match is not None else 0
        if not parts:
            raise Malformed(f"must be above 0 and at most 1, with up to three decimals, not {quoted(text)}")
        return parts

    def describe(self) -> str:
        return f"number above 0 and up to 1, e.g. `{self.example}`"


class Scaled(Value, frozen=True, gc=False):
    """A decimal number with one of a few suffixes that we define, as a whole number of the base unit."""

    scale: dict[str, int]
    means: str
    example: str

    _shape: ClassVar[re.Pattern[str]] = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) *([A-Za-z/]+)", re.ASCII)

    def parse(self, text: str) -> int:
        match = self._shape.fullmatch(text.strip())
        if match is None or match[2] not in self.scale:
            raise Malformed(f"must be a number with one of {', '.join(self.scale)}, not {quoted(text)}")
        return int(Fraction(match[1]) * self.scale[match[2]])

    def describe(self) -> str:
        return f"{self.means}, e.g. `{self.example}`"


class Price(Value, frozen=True, gc=False):
    """An amount of money as a plain decimal; exact, because it is multiplied by hours and summed."""

    example: str = "10.00"

    _shape: ClassVar[re.Pattern[str]] = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?", re.ASCII)

    def parse(self, text: str) -> Decimal:
        if not self._shape.fullmatch(text.strip()):
            raise Malformed(f"must be a price such as 10.00, not {quoted(text)}")
        return Decimal(text.strip())

    def describe(self) -> str:
        return f"price, e.g. `{self.example}`"


_RATES = {"kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12, "MB/s": 8 * 10**6, "GB/s": 8 * 10**9}


def line_rate(example: str) -> Scaled:
    """Returns a value type of bits per second, written as in practice: `200Gbps`, `300GB/s`."""
    return Scaled(_RATES, "line rate in " + ", ".join(f"`{unit}`" for unit in _RATES), example)


def parameter_count(example: str) -> Scaled:
    """Returns a value type of model sizes: `70B` are 70,000,000,000 parameters."""
    return Scaled({"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}, "number of parameters", example)
