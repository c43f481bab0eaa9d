"""Results of plugins as values. The code decides when the queue tries a job again, and whether preemption may help."""

import enum
from typing import Any, Final

import msgspec
import numpy as np

from kubenexus.base.arrays import any_true


class Code(enum.IntEnum):
    """The codes of kube-scheduler's framework."""

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
        """When the queue tries a job again that ended with this code."""
        return _RETRIES[self]

    @property
    def preemptible(self) -> bool:
        """Whether evicting other pods could help."""
        return self is Code.UNSCHEDULABLE


class Retry(enum.Enum):
    NEVER = "placed, or waiting at Permit"
    SOON = "after a backoff, with no plugin to wait for"
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
    """Why a plugin rejects a row: a constant of the plugin, never formatted with names of nodes or other tenants.

    An error ends the attempt, unless it is `unfinished`: the plugin has not looked at the row yet. Then another row is
    taken, and only if none fits the attempt ends with the error, and is repeated soon."""

    text: str
    code: Code = Code.UNSCHEDULABLE
    unfinished: bool = False


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The result for a pod as a whole. The runtime sets `plugin`, not the plugin."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""


class Skip:
    """Returned by `pre_filter` or `score` when the plugin does not concern the pod."""

    def __repr__(self) -> str:
        return "SKIP"


SKIP = Skip()

# One bit of a 64-bit column for each reason; all reasons after the 63rd share the last one.
MAX_REASONS = 64
_MOST_READ: Final = 64  # combinations of reasons that a table keeps
_MORE = Reason("further resources are insufficient")


class ReasonTable:
    """The reasons of one plugin for one pod class, each with its bit. Bits stay the same while the class lives."""

    __slots__ = ("_read", "failing", "reasons")

    def __init__(self) -> None:
        self.reasons: list[Reason] = []
        self.failing = False  # whether a reason has the code ERROR
        self._read: dict[int, tuple[Reason, ...]] = {}  # what `read` returned: a bit never changes its meaning

    def bit(self, reason: Reason) -> int:
        """Returns the bit of a reason. A linear search: nearly always there are none, one or two."""
        for i, known in enumerate(self.reasons):
            if known is reason or known == reason:
                return 1 << i
        if len(self.reasons) == MAX_REASONS - 1:
            reason = _MORE
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(reason)
            self.failing = self.failing or reason.code is Code.ERROR
        return 1 << (len(self.reasons) - 1)

    def copy(self) -> "ReasonTable":
        """Returns an independent copy."""
        copied = ReasonTable()
        copied.reasons, copied.failing = list(self.reasons), self.failing
        return copied

    def read(self, bits: int) -> tuple[Reason, ...]:
        """Returns the reasons of one row's bits, in the order in which the plugin first gave them."""
        known = self._read.get(bits)
        if known is None:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            known = self._read[bits] = tuple([reason for i, reason in enumerate(self.reasons) if bits >> i & 1])
        return known


def code_of(reasons: tuple[Reason, ...]) -> Code:
    """Returns the code of a row with these reasons: ERROR before UNRESOLVABLE before the others."""
    codes = {reason.code for reason in reasons}
    for code in (Code.ERROR, Code.UNRESOLVABLE, Code.UNSCHEDULABLE, Code.PENDING):
        if code in codes:
            return code
    return Code.SUCCESS


NO_REASONS: Final = ReasonTable()  # shared by all verdicts that reject nothing, which most are


class NodeVerdict(msgspec.Struct, gc=False, eq=False):
    """Where a Filter plugin writes its result: the rows that it rejects, and why. A row may have several reasons.

    `bits` is 0 while no row is rejected, then a column; over a single row, `row_bits` is its number. The first reason
    replaces `table` by a new one, unless the caller passed one.
    """

    table: ReasonTable = NO_REASONS
    bits: Any = 0

    @property
    def row_bits(self) -> int:
        return self.bits if isinstance(self.bits, int) else int(self.bits[0])

    def reject(self, where: Any, reason: Reason) -> None:
        """Rejects the rows where the mask (or, over a single row, the bool) is true."""
        if isinstance(where, bool):
            if where:
                self.bits |= self._bit(reason)
        elif any_true(where):
            self._add(where, self._bit(reason))

    def reject_shared(self, where: Any, reason: Reason) -> None:
        """Rejects the rows of a mask that `shared_mask` returned."""
        bit = self._bit(reason)
        if bit == 1 and isinstance(self.bits, int):
            self.bits = where
        else:
            self._add(where, bit)

    def _add(self, where: Any, bit: int) -> None:
        first = isinstance(self.bits, int)
        # Bytes take an eighth of the memory.
        kind = np.uint8 if bit < 256 and (first or self.bits.dtype == np.uint8) else np.uint64
        more = where.astype(kind)
        if bit > 1:
            more *= kind(bit)
        self.bits = more if first else np.bitwise_or(self.bits, more)

    def _bit(self, reason: Reason) -> int:
        if self.table is NO_REASONS:
            self.table = ReasonTable()
        return self.table.bit(reason)


def shared_mask(mask: Any) -> Any:
    """Returns the mask as read-only bytes that many classes can share without a copy, or None if it is true nowhere."""
    if not any_true(mask):
        return None
    mask.flags.writeable = False
    return mask.view(np.uint8)
