"""Finds the class of a pod, and holds the tables of the classes that were used last."""

from collections import OrderedDict
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.errors import Malformed, truncated_key
from kubenexus.cycle.class_table import ClassTable, WorkCounter
from kubenexus.cycle.feasibility import INFEASIBLE, Feasibility
from kubenexus.cycle.repair import refresh, refresh_for_job
from kubenexus.cycle.template_signatures import TemplateSignatures, variant_of
from kubenexus.framework import plugin_results
from kubenexus.framework.extension_points import Sign
from kubenexus.framework.job import SINGLE_POD_VIEW, JobView
from kubenexus.framework.plugin_results import FAILURES, PluginError, call_plugin, plugin_error
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.pod_limits import PER_ROW, POD_LIMITS, TERMS, Counts, count_entries, limit_exceeded, pod_work
from kubenexus.framework.pod_signature import PodSigner, affinity_without_node_names
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.volumes.pod_volumes import has_scheduled_volumes, mounted

CACHE_BYTES = 64 << 20
_BYTES_PER_ROW = 64  # of a table with reasons from several plugins and all scores; most take half of it
_BYTES_READ_PER_ROW = 64  # bytes of a signature that take as long to make as the computation of one row
_MIN_READ = 1024
_SHORT = 1024  # bytes of the signature of an ordinary pod, with one or two constraints or terms
_BYTES_OF_EXTRA = 128  # that plugins hold of a class with many constraints, for each row that its work counts as
_COPIES = 32  # a class holds its fields as objects, several times as large as its signature


class ClassifiedPod(msgspec.Struct, gc=False):
    """A pod with the table of its class, and what concerns this pod alone.

    `node_names` are the only nodes it may use, by name, and `node_names_by` the plugins that restrict it to them.
    `rejection` is set if a plugin refused the pod as a whole.
    """

    pod: Pod
    table: ClassTable
    node_names: frozenset[str] | None = None
    node_names_by: tuple[str, ...] = ()
    rejection: Verdict | None = None


class CachedClass(msgspec.Struct, gc=False, eq=False, kw_only=True):
    """A table in the cache, with what it costs."""

    table: ClassTable
    counts: Counts  # of the entries in the pod that cost work
    extra: int  # the work for these entries in each decision, in rows
    nbytes: int  # the estimated size, made when the table entered the cache
    held: int = 0  # bytes that plugins hold for the class besides, by their own account
    measured: tuple[int, int]  # the state of the cluster for which the work was found to be within the limits


class ClassCache:
    """The tables of one profile, by the signature of their class.

    The cache may drop any table at any time: the next lookup computes it again.
    """

    def __init__(self, profile_plugins: ProfilePlugins, cache_bytes: int = CACHE_BYTES) -> None:
        self.profile_plugins = profile_plugins
        self.signer = PodSigner(profile_plugins.reads)
        self.work = WorkCounter()
        self._cache_bytes = cache_bytes
        self._classes: OrderedDict[bytes, CachedClass] = OrderedDict()
        self._templates = TemplateSignatures()
        self._columns: NodeColumns | None = None
        self._nbytes = 0

    def __len__(self) -> int:
        """Returns the number of classes in the cache."""
        return len(self._classes)

    def lookup(self, pod: Pod, columns: NodeColumns, job: JobView = SINGLE_POD_VIEW) -> ClassifiedPod:
        """Returns the pod with the table of its class, up to date, as plugins score it for a member of `job`.

        Raises Malformed if the pod cannot be read, and PluginError if a plugin failed before any node was computed.
        """
        if columns is not self._columns:  # of another ledger: no table holds
            self._classes.clear()
            self._templates = TemplateSignatures()
            self._columns, self._nbytes = columns, 0
        lifted = (
            affinity_without_node_names(pod) if pod.spec.affinity is not None and self.profile_plugins.pins else None
        )
        read = self.signer.signed_values(pod, lifted, self.signed_by_plugins(pod, columns))
        signature = self.signer.encode(read)
        cached = self._classes.get(signature)
        measured = (columns.node_changes.mark, columns.pods.count.bit_length())
        outdated = cached is None or cached.measured != measured
        if cached is None or cached.measured != measured:
            counts = self._counts(pod, read, signature) if cached is None else cached.counts
            work = pod_work(counts, columns) if counts else {}
            exceeded = limit_exceeded(counts, work, columns.count) if work else ""
            if exceeded:
                return self._too_large(pod, exceeded, signature, columns)
            if cached is None:
                extra = sum(work.values()) // PER_ROW
                cached = CachedClass(
                    table=ClassTable.of(self._class(signature, pod, read), self.profile_plugins, self.work),
                    counts=counts,
                    extra=extra,
                    nbytes=len(signature) * _COPIES + _BYTES_PER_ROW * columns.size + extra * _BYTES_OF_EXTRA + 4096,
                    measured=measured,
                )
                self._classes[signature] = cached
                self._nbytes += cached.nbytes
                self._shrink()
            cached.measured = measured
        self.work.rows += cached.extra
        self._classes.move_to_end(signature)
        table, compared = cached.table, columns.pods.compared
        refresh(table, columns)
        refresh_for_job(table, job, columns)
        if outdated:
            self._charge(cached, columns)
        self.work.rows += (columns.pods.compared - compared) * TERMS.pods // PER_ROW
        for plugin in self.profile_plugins.reporting_work:
            self.work.reported += plugin.take_work()
        classified = ClassifiedPod(pod, table, rejection=table.rejection)
        if table.node_names or (pod.spec.affinity is not None and self.profile_plugins.pins):
            self._pin(classified)
        return classified

    def signature(self, pod: Pod, columns: NodeColumns, *, lift: bool = True) -> bytes:
        """Returns the signature of the pod's class.

        Without `lift` the nodes that the pod names in its affinity are part of it, as the queue needs it.
        """
        pinned = lift and pod.spec.affinity is not None and self.profile_plugins.pins
        unpinned = affinity_without_node_names(pod) if pinned else None
        return self.signer.sign(pod, unpinned, self.signed_by_plugins(pod, columns))

    def short_signature(self, pod: Pod, columns: NodeColumns) -> bytes:
        """Returns bytes that are equal for pods with equal signatures without `lift`, in less time."""
        return self.signer.sign_in_short(pod, self.signed_by_plugins(pod, columns))

    def make_class(self, pod: Pod, columns: NodeColumns, *, lift: bool = True) -> PodClass:
        """Returns a new object of the pod's class, for tests and explanations. `lift` is that of `signature`."""
        read = self.signer.signed_values(
            pod, affinity_without_node_names(pod) if lift else None, self.signed_by_plugins(pod, columns)
        )
        return self._class(self.signer.encode(read), pod, read)

    def signed_again(self, pod: Pod, pod_class: PodClass, columns: NodeColumns) -> PodClass:
        """Returns the class of a pod with what plugins sign of its volumes now, for trials that remove pods: what they
        signed before may follow from the other pods that use a claim. The table of the class stays as it is."""
        plugins = [each for each in self.profile_plugins.signs_by_pod if getattr(each, "volumes_only", False)]
        named = {each.name for each in plugins}
        kept = {name: what for name, what in pod_class.signed.items() if name not in named}
        signed = {**kept, **self._sign(pod, columns, plugins)}
        return PodClass(pod_class.signature, pod_class.pod, pinned=pod_class.pinned, signed=signed)

    def _counts(self, pod: Pod, read: list[Any], signature: bytes) -> Counts:
        """Returns the number of entries in the class that cost work; nothing if its signature is too short for many.

        The volumes that the pod mounts are no field of the class: plugins sign them.
        """
        if len(signature) <= _SHORT:
            return {}
        signed = len(self.profile_plugins.signs) > len(self.profile_plugins.signs_without_volumes)
        return count_entries(self.signer.class_pod(read), mounted(pod) if signed and pod.spec.volumes else 0)

    def _too_large(self, pod: Pod, exceeded: str, signature: bytes, columns: NodeColumns) -> ClassifiedPod:
        """Returns a pod that is more work than the limits allow: refused on all nodes, without any of the work.

        It does not enter the cache. Reading and signing it counts as work, which bounds the number of such pods in one
        burst of decisions.
        """
        self.work.rows += len(signature) // _BYTES_READ_PER_ROW + _MIN_READ
        table = ClassTable.of(PodClass(b"", Pod()), self.profile_plugins, self.work)
        table.feasibility = Feasibility(rows=np.zeros(columns.size, np.bool_))
        table.rank = np.full(columns.size, INFEASIBLE, np.int64)
        return ClassifiedPod(pod, table, rejection=Verdict(Code.UNRESOLVABLE, (exceeded,), POD_LIMITS))

    def signed_by_plugins(self, pod: Pod, columns: NodeColumns) -> dict[str, Any]:
        """Returns what the plugins sign of the pod, by their names."""
        plugins = self.profile_plugins
        by_pod = plugins.signs_by_pod if has_scheduled_volumes(pod) else plugins.signs_by_pod_without_volumes
        if not plugins.signs_by_template:
            return self._sign(pod, columns, by_pod)
        template = self._templates.of_pod_before(pod, columns)
        if template is None:
            template = self._signed_by_template(pod, columns)
        own = self._sign(pod, columns, by_pod)
        both = [each for each in plugins.signs_both if each.name in template] if plugins.signs_both else None
        if not own and not both:
            return template
        signed = {**template, **own}
        for plugin in both or ():
            what = call_plugin(plugin, plugin.sign_pod, pod, columns, signed.pop(plugin.name))
            if what is not None:
                signed[plugin.name] = what
        return signed

    def _signed_by_template(self, pod: Pod, columns: NodeColumns) -> dict[str, Any]:
        variant = variant_of(pod, columns)
        template = self._templates.find(pod, variant)
        if template is None:
            template = self._sign_template(pod, columns)
            if not self._templates.put(pod, variant, template):
                return template
        self._templates.keep(pod, columns, template)
        return template

    def _sign_template(self, pod: Pod, columns: NodeColumns) -> dict[str, Any]:
        """Calls the plugins that sign what pods of a template have in common. All are built in."""
        signed = {}
        for plugin, sign in self.profile_plugins.signs_by_template:
            what = call_plugin(plugin, sign, pod, columns)
            if what is not None:
                signed[plugin.name] = what
        return signed

    def _sign(self, pod: Pod, columns: NodeColumns, plugins: list[Sign]) -> dict[str, Any]:
        signed: dict[str, Any] = {}
        for plugin in plugins:
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

    def _charge(self, cached: CachedClass, columns: NodeColumns) -> None:
        """Measures what plugins hold for a class beyond its signature and its columns."""
        held = 0
        for plugin in self.profile_plugins.signs:
            if self.profile_plugins.traits[plugin.name].trusted and hasattr(plugin, "held_bytes"):
                held += call_plugin(plugin, plugin.held_bytes, cached.table.pod, columns)
        self._nbytes += held - cached.held
        cached.held = held
        self._shrink()

    def _shrink(self) -> None:
        """Drops the classes that were not used for longest while the cache is too large. The newest always stays."""
        while self._nbytes > self._cache_bytes and len(self._classes) > 1:
            dropped = self._classes.popitem(last=False)[1]
            self._nbytes -= dropped.nbytes + dropped.held

    def _pin(self, classified: ClassifiedPod) -> None:
        """Restricts the pod to the nodes that plugins name for its class and for the pod itself."""
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
