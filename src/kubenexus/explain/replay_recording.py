"""Repeats the decisions of a recording: the same ledger, the same jobs, the same times, the same planners."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kubenexus.api.core import Pod
from kubenexus.app.recording.entries import (
    SCHEMA,
    Assumed,
    Decided,
    Entry,
    Header,
    Preempting,
    decision_bytes,
    decode_entry,
)
from kubenexus.app.recording.segments import read_entries, segment_files
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.framework.decision import Decision
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.gang.backtracking import member_record
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.state.demand import Demand
from kubenexus.state.ledger import Ledger
from kubenexus.state.object_kinds import KINDS, apply_object
from kubenexus.state.pods import PodRecord
from kubenexus.state.preemptions import PreemptionEnd
from kubenexus.state.reservations.table import ReservationRecord

T = TypeVar("T")


class Difference(msgspec.Struct, frozen=True):
    """The first decision that came out otherwise: its number from 1, and both decisions."""

    number: int
    job: str
    now: float
    recorded: Decision
    replayed: Decision


class ReplayResult(msgspec.Struct, frozen=True):
    """How many decisions were repeated, how many of them came out otherwise, and the first of those. `ended_at` is the
    time of the last one."""

    decisions: int
    differing: int
    first: Difference | None
    began_at: float
    ended_at: float


def recording_files(path: Path) -> list[Path]:
    """Returns the files of a recording: the file itself, or those of a folder, the oldest first. Raises
    KubeNexusError if there are none."""
    found = segment_files(path) if path.is_dir() else [path]
    if not found:
        raise KubeNexusError(f"{path}: no recording in this folder")
    return found


def read_header(path: Path) -> Header:
    """Returns what the first file begins with. Raises KubeNexusError if it has no header, or one of another schema."""
    first = next(entries_of([path]), None)
    if first is None or first.operation != "header":
        raise KubeNexusError(f"{path}: has no header; it was cut at its start")
    header = msgspec.msgpack.decode(first.content, type=Header)
    if header.schema != SCHEMA:
        raise KubeNexusError(f"{path}: schema {header.schema}; this version reads schema {SCHEMA}")
    return header


def entries_of(files: list[Path]) -> Iterator[Entry]:
    """Yields the entries of files that follow each other. The state that a later file begins with is left out."""
    for number, path in enumerate(files):
        within = number > 0
        for payload in read_entries(path):
            try:
                entry = decode_entry(payload)
            except msgspec.DecodeError:
                return
            if not within:
                yield entry
            within = within and entry.operation != "state"


def replay(
    entries: Iterator[Entry], ledger: Ledger, planners: Mapping[str, Planner], until: float | None = None
) -> ReplayResult:
    """Repeats the decisions up to the time `until`. After one that differs, the recorded one is committed, so that all
    later ones begin from the same state as then. Raises KubeNexusError for an entry that cannot be read."""
    run = _Replay(ledger, planners, until)
    for entry in entries:
        try:
            going_on = run.step(entry)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise KubeNexusError(f"cannot read an entry ({entry.operation} {entry.about}): {error}") from None
        if not going_on:
            break
    return ReplayResult(run.decisions, run.differing, run.first, run.began_at, run.ended_at)


class _Replay:
    def __init__(self, ledger: Ledger, planners: Mapping[str, Planner], until: float | None) -> None:
        self._ledger, self._planners, self._until = ledger, planners, until
        self._ahead: Reservation | None = None
        self._last: Decided | None = None
        self.decisions = self.differing = 0
        self.first: Difference | None = None
        self.began_at = self.ended_at = 0.0
        self._steps: dict[str, Callable[[Entry], None]] = {
            "seen": self._seen,
            "gone": lambda e: _ignored(KINDS[e.about].gone(self._ledger, _read(e, str))),
            "block": lambda e: _ignored(self._ledger.block_unreadable_pod(e.about, _read(e, str))),
            "listed": lambda e: _ignored(self._ledger.groups.listed(e.about)),
            "unlisted": lambda e: _ignored(self._ledger.groups.unlisted(e.about)),
            "unreadable": self._unreadable,
            "hold": lambda e: self._ledger.hold_capacity(_read(e, PodRecord)),
            "release": lambda e: self._ledger.release_capacity(e.about),
            "reserve": lambda e: self._ledger.reserve(_read(e, ReservationRecord)),
            "unreserve": lambda e: _ignored(self._ledger.release_reservation(e.about)),
            "claim": self._claim,
            "preempt": self._preempt,
            "preempted": self._preempted,
            "landed": lambda e: _ignored(self._ledger.preemptions.end(e.about, PreemptionEnd.LANDED)),
            "read": lambda e: _ignored(self._ledger.read_devices(msgspec.msgpack.decode(e.content, type=int | None))),
            "contradict": lambda e: _ignored(self._ledger.contradict_numa(e.about)),
            "demand": lambda e: self._ledger.set_demand(msgspec.msgpack.decode(e.content, type=Demand | None)),
            "forget": lambda e: _ignored(self._ledger.forget(e.about)),
            "ahead": self._reserved,
            "commit": self._commit,
            "assume": self._assume,
            "header": lambda e: None,
            "state": lambda e: None,
        }

    def step(self, entry: Entry) -> bool:
        """Applies an entry. Returns False when the end is reached."""
        if entry.operation == "decide":
            return self._decide(entry)
        if entry.operation not in self._steps:
            raise KubeNexusError(f"unknown entry {entry.operation}: recorded by a later version")
        self._steps[entry.operation](entry)
        return True

    def _decide(self, entry: Entry) -> bool:
        said = _read(entry, Decided)
        if self._until is not None and said.now > self._until:
            return False
        planner = self._planners.get(entry.about)
        if planner is None:
            raise KubeNexusError(f"the configuration has no profile {entry.about}")
        ahead = self._ahead if said.ahead else None
        found = planner.decide(said.job, self._ledger.snapshot(), said.now, ahead, spared=frozenset(said.spared))
        self.decisions += 1
        self.began_at = self.began_at or said.now
        self.ended_at = said.now
        if decision_bytes(found) != decision_bytes(said.decision):
            self.differing += 1
            self.first = self.first or Difference(self.decisions, said.job.key, said.now, said.decision, found)
        self._last = said
        return True

    def _commit(self, entry: Entry) -> None:
        if self._last is None:
            raise KubeNexusError("a commit without a decision")
        generation = self._ledger.snapshot().generation
        decision = msgspec.structs.replace(self._last.decision, generation=generation)
        commit(decision, self._last.job, self._ledger, _read(entry, float))

    def _assume(self, entry: Entry) -> None:
        said = _read(entry, Assumed)
        placement, given = said.placement, said.placement.assignment
        if placement.node not in self._ledger.nodes.row_of:  # gone since; the pod counts again if it comes back
            record = member_record(said.pod, placement, self._ledger.nodes)
            record.assumed_at = said.now
            self._ledger.commit_records([record])
            return
        with self._ledger.transaction() as transaction:
            transaction.place(
                said.pod, placement.node, placement.footprint, given.device_shares, given.volumes, given.claims
            )
            transaction.commit(said.now)

    def _seen(self, entry: Entry) -> None:
        thing: Any = msgspec.msgpack.decode(entry.content, type=KINDS[entry.about].type)
        try:
            apply_object(self._ledger, entry.about, thing)
        except Malformed:
            return  # as it was then

    def _unreadable(self, entry: Entry) -> None:
        key, problem, field = _read(entry, tuple[str, str, str])
        self._ledger.groups.unreadable(entry.about, key, Malformed(problem, field=field))

    def _claim(self, entry: Entry) -> None:
        record = self._ledger.reservations.by_key.get(entry.about)
        pods = [self._ledger.pods[key] for key in _read(entry, list[str]) if key in self._ledger.pods]
        if record is not None:
            self._ledger.claim(pods, list(record.entries.values()))

    def _preempt(self, entry: Entry) -> None:
        said = _read(entry, Preempting)
        self._ledger.begin_preemption(
            entry.about,
            said.members,
            set(said.victims),
            minimum=said.minimum,
            began=said.began,
            deadline=said.deadline,
        )

    def _preempted(self, entry: Entry) -> None:
        how, members = _read(entry, tuple[str, list[Pod]])
        self._ledger.end_preemption(entry.about, PreemptionEnd(how), members)

    def _reserved(self, entry: Entry) -> None:
        self._ahead = _read(entry, Reservation)


def _read(entry: Entry, kind: type[T]) -> T:
    return msgspec.msgpack.decode(entry.content, type=kind)


def _ignored(_: object) -> None:
    """Drops what a call of the ledger returns."""
