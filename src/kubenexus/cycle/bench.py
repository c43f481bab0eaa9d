"""The bench where pods are examined: finds a pod's class, keeps the classes' tables, forgets those long unused."""

from collections import OrderedDict
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.errors import Malformed, shown_key
from kubenexus.cycle.repair import refresh
from kubenexus.cycle.table import NOWHERE, ClassTable, Work
from kubenexus.framework import contract
from kubenexus.framework.contract import FAILURES, PluginFailedError, blamed, called
from kubenexus.framework.limits import LIMITS, PER_ROW, Counts, counts_of, excess, work_of
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.profile import Lineup
from kubenexus.framework.signature import Signer, unpinned
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.volumes.mounts import mounted, mounting

CACHE_BYTES = 64 << 20
_BYTES_PER_ROW = 64  # of a table with reasons from several plugins and all scores; most take half of it
_BYTES_READ_PER_ROW = 64  # of a signature: to make it takes about as long as to ask about a row
_LEAST_READ = 1024
_SHORT = 1024  # bytes: of an ordinary pod, with one or two constraints or terms
_BYTES_OF_EXTRA = 128  # what plugins keep of a class with many constraints, for each row that its work counts as
_COPIES = 32  # a class holds its fields as objects, several times as large as its signature


class Member(msgspec.Struct, gc=False):
    """A pod on the bench: its class's table, and what concerns this pod alone.

    `only` are the nodes it is restricted to, by name, and `only_by` the plugins that said so; `refused` is set when
    some plugin refused the pod as a whole.
    """

    pod: Pod
    table: ClassTable
    only: frozenset[str] | None = None
    only_by: tuple[str, ...] = ()
    refused: Verdict | None = None


class Bench:
    """One for each profile. Holds no truth: everything here can be dropped and computed again."""

    def __init__(self, lineup: Lineup, cache_bytes: int = CACHE_BYTES) -> None:
        self.lineup = lineup
        self.signer = Signer(lineup.reads)
        self.work = Work()
        self._cache_bytes = cache_bytes
        self._tables: OrderedDict[bytes, ClassTable] = OrderedDict()
        self._columns: NodeColumns | None = None
        self._held = 0

    def __len__(self) -> int:
        """How many classes are known now."""
        return len(self._tables)

    def look(self, pod: Pod, columns: NodeColumns) -> Member:
        """The pod with its class's table, up to date. Raises Malformed when the pod cannot be read, and
        PluginFailedError when a plugin failed before any node was looked at."""
        if columns is not self._columns:  # another ledger: nothing remembered of the old one holds
            self._tables.clear()
            self._columns, self._held = columns, 0
        lifted = unpinned(pod) if pod.spec.affinity is not None and self.lineup.pins else None
        read = self.signer.read(pod, lifted, self._signed(pod, columns))
        signature = self.signer.seal(read)
        table = self._tables.get(signature)
        measured = (columns.node_changes.mark, columns.pods.count.bit_length())
        if table is None or table.measured != measured:
            counts = self._counts(pod, read, signature) if table is None else table.counts
            work = work_of(counts, columns) if counts else {}
            beyond = excess(counts, work, columns.count) if work else ""
            if beyond:
                return self._too_large(pod, beyond, signature, columns)
            if table is None:
                table = ClassTable(self._class(signature, pod, read), self.lineup, self.work, counts=counts)
                self._tables[signature] = table
                table.extra = sum(work.values()) // PER_ROW
                self._shrink(table, columns.size)
            table.measured = measured
        self.work.rows += table.extra
        self._tables.move_to_end(signature)
        refresh(table, columns)
        member = Member(pod, table, refused=table.refused)
        if table.only or (pod.spec.affinity is not None and self.lineup.pins):
            self._pin(member)
        return member

    def signature(self, pod: Pod, columns: NodeColumns, *, lift: bool = True) -> bytes:
        """The pod's class as bytes; without `lift` its pins are part of it, as the queue wants it."""
        pinned = lift and pod.spec.affinity is not None and self.lineup.pins
        return self.signer.sign(pod, unpinned(pod) if pinned else None, self._signed(pod, columns))

    def classify(self, pod: Pod, columns: NodeColumns, *, lift: bool = True) -> PodClass:
        """The pod's class, made anew; without `lift` its pins are left in. For tests and explanations."""
        read = self.signer.read(pod, unpinned(pod) if lift else None, self._signed(pod, columns))
        return self._class(self.signer.seal(read), pod, read)

    def _counts(self, pod: Pod, read: list[Any], signature: bytes) -> Counts:
        """Of what the class has; nothing if all of it is so short that it cannot be many. What it mounts is no field of
        it: plugins sign that."""
        if len(signature) <= _SHORT:
            return {}
        signed = len(self.lineup.signs) > len(self.lineup.signs_without_volumes)
        return counts_of(self.signer.model(read), mounted(pod) if signed and pod.spec.volumes else 0)

    def _too_large(self, pod: Pod, beyond: str, signature: bytes, columns: NodeColumns) -> Member:
        """A pod that is more work than one may be: refused on all nodes, before any of it is done. Nothing is kept. To
        have read and signed it counts as work, so that no burst of decisions has many of them."""
        self.work.rows += len(signature) // _BYTES_READ_PER_ROW + _LEAST_READ
        nowhere = np.full(columns.size, NOWHERE, np.int64)
        table = ClassTable(PodClass(b"", Pod()), self.lineup, self.work, ok=nowhere != NOWHERE, rank=nowhere)
        return Member(pod, table, refused=Verdict(Code.UNRESOLVABLE, (beyond,), LIMITS))

    def _signed(self, pod: Pod, columns: NodeColumns) -> dict[str, Any]:
        signed: dict[str, Any] = {}
        for plugin in self.lineup.signs if mounting(pod) else self.lineup.signs_without_volumes:
            try:  # not `called`: each pod is signed
                what = plugin.sign(pod, columns)
            except FAILURES as error:
                raise blamed(plugin, error) from error
            if what is not None:
                trusted = self.lineup.traits[plugin.name].trusted
                signed[plugin.name] = what if trusted else contract.signed(what, plugin.name)
        return signed

    def _class(self, signature: bytes, pod: Pod, read: list[Any]) -> PodClass:
        *_, pinned, signed = read
        try:
            return PodClass(signature, self.signer.model(read), pinned=pinned, signed=signed)
        except Malformed as problem:
            raise problem.within(subject=f"Pod {shown_key(pod.key)}") from None

    def _shrink(self, newest: ClassTable, rows: int) -> None:
        """Drop the tables unused for longest while the cache is over its bound; the newest always stays."""
        signature = newest.pod.signature
        newest.held = len(signature) * _COPIES + _BYTES_PER_ROW * rows + newest.extra * _BYTES_OF_EXTRA + 4096
        self._held += newest.held
        while self._held > self._cache_bytes and len(self._tables) > 1:
            self._held -= self._tables.popitem(last=False)[1].held

    def _pin(self, member: Member) -> None:
        """To the nodes that plugins name for its class, and for this very pod."""
        restrictions = list(member.table.only)
        for plugin in self.lineup.pins:
            try:
                names = contract.pinned(called(plugin, plugin.pins, member.pod), plugin.name)
            except PluginFailedError as failure:
                names = Verdict(Code.ERROR, (failure.problem,), plugin.name)
            if isinstance(names, Verdict):
                member.refused = names
                return
            if names is not None:
                restrictions.append((plugin.name, names))
        if restrictions:
            _restrict(member, restrictions)


def _restrict(member: Member, restrictions: list[tuple[str, frozenset[str]]]) -> None:
    by = tuple(sorted({plugin for plugin, _ in restrictions}))
    names = frozenset.intersection(*(names for _, names in restrictions))
    member.only, member.only_by = names, by
    if not names and member.refused is None:
        said = f"node(s) didn't satisfy plugin {by[0]}"
        if len(by) > 1:
            said = f"node(s) didn't satisfy plugin(s) [{' '.join(by)}] simultaneously"
        member.refused = Verdict(Code.UNRESOLVABLE, (said,))
