"""Outcomes are values, and the code carries the consequence: when to try again, and whether preemption may help."""

import enum
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubenexus.base.arrays import any_true

BitColumn = NDArray[np.uint64]


class Code(enum.IntEnum):
    """As kube-scheduler's framework names them."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """The name in kube-scheduler's logs, metrics and tests."""
        return _LABELS[self]

    @property
    def retry(self) -> "Retry":
        """What the queue does with a job that ended so."""
        return _RETRIES[self]

    @property
    def preemptible(self) -> bool:
        """Whether evicting somebody could help."""
        return self is Code.UNSCHEDULABLE


class Retry(enum.Enum):
    NEVER = "placed, or waiting for somebody else's word"
    SOON = "after a backoff, nobody blamed"
    ON_EVENT = "when an event of a plugin that refused comes, after a backoff"
    ON_EVENT_AT_ONCE = "when such an event comes, without a backoff"


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_RETRIES = {
    Code.SUCCESS: Retry.NEVER,
    Code.ERROR: Retry.SOON,
    Code.UNSCHEDULABLE: Retry.ON_EVENT,
    Code.UNRESOLVABLE: Retry.ON_EVENT,
    Code.WAIT: Retry.NEVER,
    Code.SKIP: Retry.NEVER,
    Code.PENDING: Retry.ON_EVENT_AT_ONCE,
}


class Reason(msgspec.Struct, frozen=True, gc=False):
    """Why a row is refused: a constant of the plugin, never formatted with names of nodes or other tenants."""

    text: str
    code: Code = Code.UNSCHEDULABLE


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The answer for a pod as a whole. `plugin` is stamped by the runtime, not by the plugin."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""


class Skip:
    """`prepare` or `score` returns this when the plugin is not concerned with the pod."""

    def __repr__(self) -> str:
        return "SKIP"


SKIP = Skip()

# One bit of a 64-bit column for each reason; the last is shared by all that come after.
MOST_REASONS = 64
_MORE = Reason("further resources are insufficient")


class ReasonTable:
    """The reasons one plugin gave for one pod class, each with its bit. Bits stay put while the class lives."""

    __slots__ = ("failing", "reasons")

    def __init__(self) -> None:
        self.reasons: list[Reason] = []
        self.failing = False  # whether one of them is an error

    def bit(self, reason: Reason) -> int:
        """Looked for one by one: nearly always there are none, one or two."""
        for i, known in enumerate(self.reasons):
            if known is reason or known == reason:
                return 1 << i
        if len(self.reasons) == MOST_REASONS - 1:
            reason = _MORE
        if len(self.reasons) < MOST_REASONS:
            self.reasons.append(reason)
            self.failing = self.failing or reason.code is Code.ERROR
        return 1 << (len(self.reasons) - 1)

    def copy(self) -> "ReasonTable":
        """One that may be written to without this one noticing."""
        copied = ReasonTable()
        copied.reasons, copied.failing = list(self.reasons), self.failing
        return copied

    def read(self, bits: int) -> tuple[Reason, ...]:
        """The reasons behind one row's bits, in the order they were first given."""
        return tuple(reason for i, reason in enumerate(self.reasons) if bits >> i & 1)


def code_of(reasons: tuple[Reason, ...]) -> Code:
    """A node that one reason makes hopeless is hopeless; an error outweighs everything."""
    codes = {reason.code for reason in reasons}
    for code in (Code.ERROR, Code.UNRESOLVABLE, Code.UNSCHEDULABLE, Code.PENDING):
        if code in codes:
            return code
    return Code.SUCCESS


NO_REASONS: Final = ReasonTable()  # of all who refused nothing yet: most of them never will


class NodeVerdict(msgspec.Struct, gc=False, eq=False):
    """Where a filter writes its answer: which rows it refuses, and why. A row may have several reasons.

    `bits` is 0 while nothing is refused, then a column of them; over a single row, `row_bits` reads it as a number.
    `table` is a new one from the first reason on, unless one was given.
    """

    table: ReasonTable = NO_REASONS
    bits: Any = 0

    @property
    def row_bits(self) -> int:
        return self.bits if isinstance(self.bits, int) else int(self.bits[0])

    def reject(self, where: Any, reason: Reason) -> None:
        """Refuse the rows where the mask (or, over a single row, the bool) is true."""
        if isinstance(where, bool):
            if where:
                self.bits |= self._bit(reason)
        elif any_true(where):
            self._add(where, self._bit(reason))

    def reject_shared(self, where: Any, reason: Reason) -> None:
        """The same with what `shared_mask` made of a mask."""
        bit = self._bit(reason)
        if bit == 1 and isinstance(self.bits, int):
            self.bits = where
        else:
            self._add(where, bit)

    def _add(self, where: Any, bit: int) -> None:
        first = isinstance(self.bits, int)
        kind = np.uint8 if bit < 256 and (first or self.bits.dtype == np.uint8) else np.uint64  # bytes are quick
        more = where.astype(kind)
        if bit > 1:
            more *= kind(bit)
        self.bits = more if first else np.bitwise_or(self.bits, more)

    def _bit(self, reason: Reason) -> int:
        if self.table is NO_REASONS:
            self.table = ReasonTable()
        return self.table.bit(reason)


def shared_mask(mask: Any) -> Any:
    """A mask for many classes to be given: as bytes that are kept, not copied, and nobody may write into. None if it
    is true nowhere."""
    if not any_true(mask):
        return None
    mask.flags.writeable = False
    return mask.view(np.uint8)
