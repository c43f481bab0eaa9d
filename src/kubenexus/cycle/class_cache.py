"""The bench where pods are examined: finds a pod's class, keeps the classes' tables, forgets those long unused."""

from collections import OrderedDict
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.errors import Malformed, truncated_key
from kubenexus.cycle.class_table import INFEASIBLE, ClassTable, WorkCounter
from kubenexus.cycle.repair import refresh
from kubenexus.framework import plugin_results
from kubenexus.framework.plugin_results import FAILURES, PluginError, call_plugin, plugin_error
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.pod_limits import PER_ROW, POD_LIMITS, Counts, count_entries, limit_exceeded, pod_work
from kubenexus.framework.pod_signature import PodSigner, affinity_without_node_names
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.volumes.pod_volumes import has_scheduled_volumes, mounted

CACHE_BYTES = 64 << 20
_BYTES_PER_ROW = 64  # of a table with reasons from several plugins and all scores; most take half of it
_BYTES_READ_PER_ROW = 64  # of a signature: to make it takes about as long as to ask about a row
_LEAST_READ = 1024
_SHORT = 1024  # bytes: of an ordinary pod, with one or two constraints or terms
_BYTES_OF_EXTRA = 128  # what plugins keep of a class with many constraints, for each row that its work counts as
_COPIES = 32  # a class holds its fields as objects, several times as large as its signature


class ClassifiedPod(msgspec.Struct, gc=False):
    """A pod on the bench: its class's table, and what concerns this pod alone.

    `node_names` are the nodes it is restricted to, by name, and `node_names_by` the plugins that said so; `rejection`
    is set when some plugin refused the pod as a whole.
    """

    pod: Pod
    table: ClassTable
    node_names: frozenset[str] | None = None
    node_names_by: tuple[str, ...] = ()
    rejection: Verdict | None = None


class ClassCache:
    """One for each profile. Holds no truth: everything here can be dropped and computed again."""

    def __init__(self, profile_plugins: ProfilePlugins, cache_bytes: int = CACHE_BYTES) -> None:
        self.profile_plugins = profile_plugins
        self.signer = PodSigner(profile_plugins.reads)
        self.work = WorkCounter()
        self._cache_bytes = cache_bytes
        self._tables: OrderedDict[bytes, ClassTable] = OrderedDict()
        self._columns: NodeColumns | None = None
        self._held = 0

    def __len__(self) -> int:
        """How many classes are known now."""
        return len(self._tables)

    def lookup(self, pod: Pod, columns: NodeColumns) -> ClassifiedPod:
        """The pod with its class's table, up to date. Raises Malformed when the pod cannot be read, and
        PluginError when a plugin failed before any node was looked at."""
        if columns is not self._columns:  # another ledger: nothing remembered of the old one holds
            self._tables.clear()
            self._columns, self._held = columns, 0
        lifted = (
            affinity_without_node_names(pod) if pod.spec.affinity is not None and self.profile_plugins.pins else None
        )
        read = self.signer.signed_values(pod, lifted, self._signed(pod, columns))
        signature = self.signer.encode(read)
        table = self._tables.get(signature)
        measured = (columns.node_changes.mark, columns.pods.count.bit_length())
        if table is None or table.measured != measured:
            counts = self._counts(pod, read, signature) if table is None else table.counts
            work = pod_work(counts, columns) if counts else {}
            beyond = limit_exceeded(counts, work, columns.count) if work else ""
            if beyond:
                return self._too_large(pod, beyond, signature, columns)
            if table is None:
                table = ClassTable(self._class(signature, pod, read), self.profile_plugins, self.work, counts=counts)
                self._tables[signature] = table
                table.extra = sum(work.values()) // PER_ROW
                self._shrink(table, columns.size)
            table.measured = measured
        self.work.rows += table.extra
        self._tables.move_to_end(signature)
        refresh(table, columns)
        classified = ClassifiedPod(pod, table, rejection=table.rejection)
        if table.node_names or (pod.spec.affinity is not None and self.profile_plugins.pins):
            self._pin(classified)
        return classified

    def signature(self, pod: Pod, columns: NodeColumns, *, lift: bool = True) -> bytes:
        """The pod's class as bytes; without `lift` its pins are part of it, as the queue wants it."""
        pinned = lift and pod.spec.affinity is not None and self.profile_plugins.pins
        return self.signer.sign(pod, affinity_without_node_names(pod) if pinned else None, self._signed(pod, columns))

    def make_class(self, pod: Pod, columns: NodeColumns, *, lift: bool = True) -> PodClass:
        """The pod's class, made anew; without `lift` its pins are left in. For tests and explanations."""
        read = self.signer.signed_values(
            pod, affinity_without_node_names(pod) if lift else None, self._signed(pod, columns)
        )
        return self._class(self.signer.encode(read), pod, read)

    def _counts(self, pod: Pod, read: list[Any], signature: bytes) -> Counts:
        """Of what the class has; nothing if all of it is so short that it cannot be many. What it mounts is no field of
        it: plugins sign that."""
        if len(signature) <= _SHORT:
            return {}
        signed = len(self.profile_plugins.signs) > len(self.profile_plugins.signs_without_volumes)
        return count_entries(self.signer.class_pod(read), mounted(pod) if signed and pod.spec.volumes else 0)

    def _too_large(self, pod: Pod, beyond: str, signature: bytes, columns: NodeColumns) -> ClassifiedPod:
        """A pod that is more work than one may be: refused on all nodes, before any of it is done. Nothing is kept. To
        have read and signed it counts as work, so that no burst of decisions has many of them."""
        self.work.rows += len(signature) // _BYTES_READ_PER_ROW + _LEAST_READ
        nowhere = np.full(columns.size, INFEASIBLE, np.int64)
        table = ClassTable(
            PodClass(b"", Pod()), self.profile_plugins, self.work, feasible=nowhere != INFEASIBLE, rank=nowhere
        )
        return ClassifiedPod(pod, table, rejection=Verdict(Code.UNRESOLVABLE, (beyond,), POD_LIMITS))

    def _signed(self, pod: Pod, columns: NodeColumns) -> dict[str, Any]:
        signed: dict[str, Any] = {}
        for plugin in (
            self.profile_plugins.signs if has_scheduled_volumes(pod) else self.profile_plugins.signs_without_volumes
        ):
            try:  # not `call_plugin`: each pod is signed
                what = plugin.sign(pod, columns)
            except FAILURES as error:
                raise plugin_error(plugin, error) from error
            if what is not None:
                trusted = self.profile_plugins.traits[plugin.name].trusted
                signed[plugin.name] = what if trusted else plugin_results.checked_signature(what, plugin.name)
        return signed

    def _class(self, signature: bytes, pod: Pod, read: list[Any]) -> PodClass:
        *_, pinned, signed = read
        try:
            return PodClass(signature, self.signer.class_pod(read), pinned=pinned, signed=signed)
        except Malformed as problem:
            raise problem.within(subject=f"Pod {truncated_key(pod.key)}") from None

    def _shrink(self, newest: ClassTable, rows: int) -> None:
        """Drop the tables unused for longest while the cache is over its bound; the newest always stays."""
        signature = newest.pod.signature
        newest.held = len(signature) * _COPIES + _BYTES_PER_ROW * rows + newest.extra * _BYTES_OF_EXTRA + 4096
        self._held += newest.held
        while self._held > self._cache_bytes and len(self._tables) > 1:
            self._held -= self._tables.popitem(last=False)[1].held

    def _pin(self, classified: ClassifiedPod) -> None:
        """To the nodes that plugins name for its class, and for this very pod."""
        restrictions = list(classified.table.node_names)
        for plugin in self.profile_plugins.pins:
            try:
                names = plugin_results.checked_node_names(
                    call_plugin(plugin, plugin.node_names, classified.pod), plugin.name
                )
            except PluginError as failure:
                names = Verdict(Code.ERROR, (failure.problem,), plugin.name)
            if isinstance(names, Verdict):
                classified.rejection = names
                return
            if names is not None:
                restrictions.append((plugin.name, names))
        if restrictions:
            _restrict(classified, restrictions)


def _restrict(classified: ClassifiedPod, restrictions: list[tuple[str, frozenset[str]]]) -> None:
    by = tuple(sorted({plugin for plugin, _ in restrictions}))
    names = frozenset.intersection(*(names for _, names in restrictions))
    classified.node_names, classified.node_names_by = names, by
    if not names and classified.rejection is None:
        said = f"node(s) didn't satisfy plugin {by[0]}"
        if len(by) > 1:
            said = f"node(s) didn't satisfy plugin(s) [{' '.join(by)}] simultaneously"
        classified.rejection = Verdict(Code.UNRESOLVABLE, (said,))
