"""The recorder: writes entries, and remembers the latest one about each thing, so that every file of the ring begins
with the whole state.

It is off by default. Where it is on, an event costs its encoding and a copy in memory (a kilobyte for a pod), and a
decision its encoding. A failed write ends the recording, never the scheduling.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.meta import ObjectMeta
from kubenexus.app.recording.anonymiser import Anonymiser
from kubenexus.app.recording.entries import (
    Assumed,
    Decided,
    Header,
    decode_entry,
    encode_entry,
    without_generation,
)
from kubenexus.app.recording.segments import SegmentWriter
from kubenexus.framework.decision import Decision, PodPlacement
from kubenexus.framework.job import Job
from kubenexus.observe import logs
from kubenexus.plan.gang.reservation import Reservation

log = logs.get("recorder")
# The order in which a file has the state, after the nodes.
_ORDER = ("unlisted", "unreadable", "seen", "Pod", "hold", "reserve", "claim", "preempt", "demand")


class RecordedState(Protocol):
    """What the recorder reads of the ledger when it begins a file."""

    def node_rows(self) -> tuple[list[str], list[int]]:
        """Returns the nodes by row, "" for a free row, and the free rows in the order in which they became free."""

    def pods_by_arrival(self) -> Iterable[str]:
        """Returns the keys of pods that count on nodes, in the order in which they came to count."""

    def contradicted_nodes(self) -> list[str]:
        """Returns the nodes whose kubelet refused a pod that was expected to be admitted."""

    def left_of_preemption(self, job: str, payload: bytes) -> list[bytes]:
        """Returns what is left of a preemption that was recorded, as entries."""


class FlightRecorder:
    """Records the changes of a ledger and the decisions."""

    def __init__(self, writer: SegmentWriter, header: Header, anonymiser: Anonymiser | None = None) -> None:
        self._writer, self._header, self._anonymiser = writer, header, anonymiser
        self._state: dict[tuple[str, str], bytes] = {}  # the latest entry by sort and subject
        self._ahead: Reservation | None = None
        self._paused = 0
        self._ledger: RecordedState | None = None
        self.failed = False
        self._contained(self._begin)

    def attach(self, ledger: RecordedState) -> None:
        """Sets the ledger that is recorded, which is built with this recorder."""
        self._ledger = ledger

    def event(self, operation: str, about: str, content: Any = None, *, place: tuple[str, str] | None = None) -> None:
        """Records an event, before it changes the ledger. `place` is its sort and subject in the state, None if it is
        not part of it."""
        if self._paused or self.failed:
            return
        self._make_room()
        payload = self._record(operation, about, content)
        if place is not None and payload:
            # What is left of a preemption is found by names, so it is encoded again when a file begins.
            self._state[place] = encode_entry(operation, about, content) if operation == "preempt" else payload

    def drop(self, sort: str, subject: str) -> None:
        """Removes what is over from the state."""
        if not self._paused:
            self._state.pop((sort, subject), None)

    def remember_pod(self, pod: Pod) -> None:
        """Puts a pod into the state that a recorded event told the ledger of by the way."""
        if not self.failed:
            self._state["Pod", pod.key] = self._encoded("seen", "Pod", pod)

    def decided(
        self, job: Job, now: float, ahead: Reservation | None, spared: Collection[str], decision: Decision
    ) -> None:
        """Records a decision."""
        self._make_room()
        if ahead is not None and ahead is not self._ahead:
            self._record("ahead", ahead.gang, ahead)
            self._ahead = ahead
        content = Decided(job, now, ahead is not None, tuple(sorted(spared)), without_generation(decision))
        self._record("decide", job.profile, content)

    @contextmanager
    def commit(self, job: Job, decision: Decision, now: float) -> Iterator[None]:
        """Records that the decision, the last one, is written into the ledger within the block. No file begins between
        the two."""
        self._record("commit", job.key, now)
        pods = {pod.key: pod for pod in job.pods}
        for each in () if self.failed else decision.placements:
            assumed = self._encoded("assume", each.pod, Assumed(pods[each.pod], each, now))
            self._state["assume", each.pod] = assumed
        with self.paused():
            yield

    def assumed(self, placed: Iterable[tuple[Pod, PodPlacement]], now: float) -> None:
        """Records members of a large gang, of which a portion was just written into the ledger."""
        self._make_room()
        for pod, placement in () if self.failed else placed:
            content = Assumed(pod, placement, now)
            if payload := self._record("assume", pod.key, content):
                self._state["assume", pod.key] = payload

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Records nothing within the block: a call of the ledger that calls others is one event."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    def flush(self) -> None:
        """Called when the loop is idle: what was recorded survives the end of the process."""
        self._contained(self._writer.flush)

    def silence(self) -> None:
        """Records nothing from now on, and writes nothing that is buffered."""
        self.failed = True

    def close(self) -> None:
        self._contained(self._writer.close)

    def _record(self, operation: str, about: str, content: Any = None) -> bytes:
        """Writes an entry, and returns its payload; b"" after a failure."""
        if self.failed:
            return b""
        try:
            payload = self._encoded(operation, about, content)
            self._writer.write(payload)
        except (OSError, TypeError, ValueError, OverflowError, UnicodeEncodeError) as error:
            self._fail(error)
            return b""
        return payload

    def _make_room(self) -> None:
        """Begins another file if one is due."""
        if self._writer.full:
            self._contained(self._begin)

    def _begin(self) -> None:
        """Begins a file with the state as it is now."""
        self._writer.begin()
        self._ahead = None
        self._writer.write(encode_entry("header", "", self._header))
        self._begin_nodes()
        for sort, subject in self._in_order():
            payload = self._state[sort, subject]
            for each in self._left_of(sort, subject, payload):
                self._writer.write(each)
        for node in () if self._ledger is None else self._ledger.contradicted_nodes():
            self._writer.write(self._encoded("contradict", node))
        self._writer.write(encode_entry("state", ""))
        self._writer.count_from_here()

    def _begin_nodes(self) -> None:
        """Writes the nodes so that each gets its row again: among equally good nodes, members of a gang are placed in
        the order of rows."""
        names, free = ([], []) if self._ledger is None else self._ledger.node_rows()
        for row, name in enumerate(names):
            node = self._state.get(("Node", name)) if name else None
            self._writer.write(node or encode_entry("seen", "Node", _no_node(row)))
        for row in free:
            self._writer.write(encode_entry("gone", "Node", _no_node(row).metadata.name))

    def _in_order(self) -> list[tuple[str, str]]:
        """Returns what the state has besides nodes, in the order in which a file has it. Pods that count on nodes come
        in the order in which they came to count, which decides between victims of equal importance."""
        order = {sort: i for i, sort in enumerate(_ORDER)} | {"assume": _ORDER.index("Pod")}
        arrived = () if self._ledger is None else self._ledger.pods_by_arrival()
        number = {key: i for i, key in enumerate(arrived)}

        def place_in_file(place: tuple[str, str]) -> tuple[int, int]:
            sort, subject = place
            counts = sort == "assume" or (sort == "Pod" and ("assume", subject) not in self._state)
            return order[sort], number.get(subject, -1) if counts else -1

        return sorted([place for place in self._state if place[0] != "Node"], key=place_in_file)

    def _left_of(self, sort: str, subject: str, payload: bytes) -> list[bytes]:
        if sort == "preempt" and self._ledger is not None:
            return [self._encoded_again(each) for each in self._ledger.left_of_preemption(subject, payload)]
        return [payload]

    def _encoded(self, operation: str, about: str, content: Any = None) -> bytes:
        if self._anonymiser is not None:
            about, content = self._anonymiser.replaced(about, content)
        return encode_entry(operation, about, content)

    def _encoded_again(self, payload: bytes) -> bytes:
        if self._anonymiser is None:
            return payload
        entry = decode_entry(payload)
        return self._encoded(entry.operation, entry.about, msgspec.msgpack.decode(entry.content))

    def _contained(self, work: Callable[[], None]) -> None:
        if self.failed:
            return
        try:
            work()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.failed = True
        self._state.clear()
        with suppress(OSError):
            self._writer.close()
        log.error("Failed to record; the recording ends here", error)  # noqa: PLE1205 - our own log


def _no_node(row: int) -> Node:
    """Returns a node that takes a row which is to be free. No node of a cluster can have its name."""
    return Node(metadata=ObjectMeta(name=f"free row/{row}"))
