"""A recording of `kubenexus run --record` as a trace: the cluster before its first decision, and its jobs.

A job arrives when it is decided for the first time and ends when the last of its pods is gone. Events have no times of
their own, so the end is the time of the decision before. Pods that were on nodes at the start stay there, and so do the
nodes: those that come or go later are left out.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.app.recording.entries import SCHEMA, Assumed, Decided, Entry, Header, decode_entry
from kubenexus.app.recording.segments import read_entries, segment_files
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.framework.job import Job
from kubenexus.sim.replay.dump_jobs import shape_of, without_node
from kubenexus.sim.replay.traces.trace import TraceJob
from kubenexus.state.ledger import Ledger
from kubenexus.state.object_kinds import KINDS, apply_object
from kubenexus.state.pods import is_finished

LEAST_SECONDS = 1.0  # that a job runs


class RecordedTrace:
    """The jobs, and the objects that the ledger of a run starts with."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], Any] = {}  # objects before the first decision, by kind and key
        self._jobs: dict[str, tuple[Job, float]] = {}  # with their first decision, by the UID of the first pod
        self._of_pod: dict[str, str] = {}  # the first pod's UID, by that of each pod
        self._uids: dict[str, str] = {}  # by the pod's key
        self._left: dict[str, set[str]] = {}  # the pods of each job that are not gone
        self._ended: dict[str, float] = {}
        self._began: float | None = None
        self._now = 0.0

    def read(self, entries: Iterator[Entry]) -> None:
        for entry in entries:
            if entry.operation == "seen":
                self._seen(entry.about, msgspec.msgpack.decode(entry.content, type=KINDS[entry.about].type))
            elif entry.operation == "gone":
                self._gone(entry.about, msgspec.msgpack.decode(entry.content, type=str))
            elif entry.operation == "assume":
                said = msgspec.msgpack.decode(entry.content, type=Assumed)
                spec = msgspec.structs.replace(said.pod.spec, node_name=said.placement.node)
                self._seen("Pod", msgspec.structs.replace(said.pod, spec=spec))
            elif entry.operation == "decide":
                self._decided(msgspec.msgpack.decode(entry.content, type=Decided))

    def jobs(self) -> tuple[TraceJob, ...]:
        """Returns the jobs in the order of their arrival. Jobs that cannot be read are left out."""
        found = []
        for uid, (job, at) in self._jobs.items():
            pods = tuple([without_node(pod) for pod in job.pods])
            ended = self._ended.get(uid)
            duration = None if ended is None else max(ended - at, LEAST_SECONDS)
            try:
                shape = shape_of(pods[0])
            except Malformed:
                continue
            arrival = at - (self._began or 0.0)
            found.append(TraceJob(f"{job.key} {uid}", shape, arrival, duration, len(pods), job.namespace, pods))
        return tuple(found)

    def ledger(self) -> Ledger:
        """Returns the cluster before the first decision."""
        ledger = Ledger()
        # As in a dump: nodes after the other kinds, and pods last.
        for kind, thing in sorted(self._first.items(), key=lambda item: (item[0][0] == "Pod", item[0][0] == "Node")):
            try:
                apply_object(ledger, kind[0], thing)
            except Malformed:
                continue  # as it was then
        ledger.read_devices()
        return ledger

    def _seen(self, kind: str, thing: Any) -> None:
        if isinstance(thing, Node) and "/" in thing.metadata.name:
            return  # it only keeps a row free
        key = thing.metadata.key
        if self._began is None:
            self._first[kind, key] = thing
        if isinstance(thing, Pod):
            self._uids[key] = thing.metadata.uid
            if is_finished(thing):
                self._end(thing.metadata.uid)

    def _gone(self, kind: str, key: str) -> None:
        if self._began is None:
            self._first.pop((kind, key), None)
        if kind == "Pod" and key in self._uids:
            self._end(self._uids[key])

    def _end(self, uid: str) -> None:
        first = self._of_pod.get(uid, "")
        if uid in self._left.get(first, ()):
            self._left[first].discard(uid)
            if not self._left[first]:
                self._ended[first] = self._now

    def _decided(self, said: Decided) -> None:
        self._began = said.now if self._began is None else self._began
        self._now = said.now
        uids = [pod.metadata.uid for pod in said.job.pods]
        if not uids or any(uid in self._of_pod for uid in uids):
            return  # tried before
        self._jobs[uids[0]] = (said.job, said.now)
        self._left[uids[0]] = set(uids)
        self._of_pod.update(dict.fromkeys(uids, uids[0]))


def read_recording(path: Path) -> RecordedTrace:
    """Reads a file, or the files of a folder. Raises KubeNexusError if there is no recording."""
    files = segment_files(path) if path.is_dir() else [path]
    if not files:
        raise KubeNexusError(f"{path}: no recording in this folder")
    found = RecordedTrace()
    try:
        found.read(_entries(files))
    except (msgspec.DecodeError, KeyError) as error:
        raise KubeNexusError(f"{path}: cannot read an entry: {error}") from None
    return found


def _entries(files: Sequence[Path]) -> Iterator[Entry]:
    """Yields the entries of files that follow each other, but the state that a later one begins with."""
    for number, path in enumerate(files):
        skipping = number > 0
        for payload in read_entries(path):
            entry = decode_entry(payload)
            if entry.operation == "header":
                header = msgspec.msgpack.decode(entry.content, type=Header)
                if header.schema != SCHEMA:
                    raise KubeNexusError(f"{path}: schema {header.schema}; this version reads schema {SCHEMA}")
            if not skipping:
                yield entry
            skipping = skipping and entry.operation != "state"
