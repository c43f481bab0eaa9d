"""Our answers about one incoming pod, in the format of the recorded ones.

They come from the same tables that a decision reads (`cycle`, `plan`), so that caches, pod classes and diagnosis are
compared together with the plugins. A plugin is called alone only where upstream's was.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.devices.pod_claims import claim_name
from kubenexus.cycle.class_table import ClassTable, WorkCounter
from kubenexus.cycle.nominated_pods import filter_with_nominated_pods
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.cycle.rejections import error_text
from kubenexus.cycle.repair import refresh
from kubenexus.framework.decision import Decision
from kubenexus.framework.extension_points import Filter, PinsNodes, PreFilter, PreFilterResult
from kubenexus.framework.job import Assignment, Job
from kubenexus.framework.object_names import EXTENDED_RESOURCES, named_reasons
from kubenexus.framework.verdict import Code, Reason, Verdict, code_of
from kubenexus.plan.decide import Planner
from kubenexus.plan.diagnose import rejections
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes
from kubenexus.testing.oracle.expected import First, PreFiltered, Status


class OurAnswers:
    """Every property is one aspect, computed on demand."""

    def __init__(self, pod: Pod, ledger: Ledger, planner: Planner) -> None:
        self.pod = pod
        self.ledger = ledger
        self.planner = planner
        self.columns = ledger.nodes
        self.snapshot = ledger.snapshot()
        self.classified = planner.class_cache.lookup(pod, self.columns)
        self.yielding = filter_with_nominated_pods(pod, self.classified.table, self.snapshot)
        self.plain = self._unlifted() if self.classified.table.pod.pinned else self.classified.table

    def _unlifted(self) -> ClassTable:
        """Returns the pod's table with its pins left in: upstream's NodeAffinity, on its own, refuses the other
        nodes."""
        pod_class = self.planner.class_cache.make_class(self.pod, self.columns, lift=False)
        table = ClassTable.of(pod_class, self.planner.profile_plugins, WorkCounter())
        refresh(table, self.columns)
        return table

    # --- before any node is looked at -----------------------------------------------------------------------------

    @cached_property
    def skipped(self) -> frozenset[str]:
        """The filters that do not apply to the pod."""
        concerned = {column.plugin.name for column in self.plain.filters}
        return frozenset(plugin.name for plugin in self.planner.profile_plugins.filters) - concerned

    @cached_property
    def prefiltered(self) -> dict[str, PreFiltered]:
        """The PreFilter results by plugin, without empty ones."""
        answers = {plugin.name: self._prefilter(plugin) for plugin in self.planner.profile_plugins.filters}
        return {name: answer for name, answer in answers.items() if answer != PreFiltered()}

    def _prefilter(self, plugin: Filter) -> PreFiltered:
        prepared = plugin.pre_filter(self.plain.pod, Nodes(self.columns)) if isinstance(plugin, PreFilter) else None
        pinned = plugin.node_names(self.pod) if isinstance(plugin, PinsNodes) else None
        for answer in (prepared, pinned):
            if isinstance(answer, Verdict):
                return PreFiltered(status=(answer.code.label, frozenset(answer.reasons)))
        sets = [prepared.names] if isinstance(prepared, PreFilterResult) else []
        sets += [pinned] if isinstance(pinned, frozenset) else []
        return PreFiltered(nodes=frozenset.intersection(*sets) if sets else None)

    @property
    def refused(self) -> First | None:
        """The refusal of the pod as a whole, or None."""
        verdict = self.classified.rejection
        return None if verdict is None else (verdict.plugin, verdict.code.label, frozenset(verdict.reasons))

    @property
    def only(self) -> frozenset[str] | None:
        """The remaining nodes, if they were restricted."""
        return self.classified.node_names if self.classified.rejection is None else None

    # --- node by node ---------------------------------------------------------------------------------------------

    @cached_property
    def rejects(self) -> dict[str, dict[str, Status]]:
        """For each filter the nodes that it refuses, called alone and without nominated pods."""
        return {column.plugin.name: dict(self._rejects(column)) for column in self.plain.filters}

    def _rejects(self, column: FilterColumn) -> Iterator[tuple[str, Status]]:
        failed = self.prefiltered.get(column.plugin.name, PreFiltered()).status
        for name, row in self.columns.row_of.items():
            bits = column.at(row)
            if bits and failed is None:  # a plugin that refused the pod as a whole is not called for nodes
                yield name, _status(named_reasons(column.reasons.read(bits), self.pod))

    @cached_property
    def firsts(self) -> dict[str, First]:
        """For each refused node, the plugin that refused it first, nominated pods counted in."""
        names = self.columns.row_of
        if self.refused is not None:
            return dict.fromkeys(names, self.refused)
        found: dict[str, First] = {}
        if self.only is not None:
            said = f"node(s) didn't satisfy plugin(s) [{' '.join(self.classified.node_names_by)}]"
            found = dict.fromkeys(names.keys() - self.only, ("", Code.UNRESOLVABLE.label, frozenset({said})))
        for plugin, reasons, where in rejections(self.classified, self.columns, self.yielding):
            for row in np.flatnonzero(where).tolist():
                found[self.columns.names[row]] = (plugin, *_status(_reported(plugin, reasons)))
        return found

    @cached_property
    def feasible(self) -> frozenset[str]:
        """The nodes a decision would choose from."""
        if self.refused is not None:
            return frozenset()
        yielded = set() if self.yielding is None else set(self.yielding.rows.tolist())
        ok = self.classified.table.feasible
        rows = (name for name, row in self.columns.row_of.items() if ok[row] and row not in yielded)
        return frozenset(rows) if self.only is None else frozenset(rows) & self.only

    def devices(self, node: str) -> dict[str, list[tuple[str, ...]]]:
        """The devices that each claim of the pod would get on a node, by the name of the claim."""
        table, row = self.classified.table, self.columns.row_of[node]
        found: dict[str, list[tuple[str, ...]]] = {}
        for plugin in table.plugins.assigns:
            answer = plugin.assign(table.pod, row, Nodes(self.columns))
            for choice in answer.claims if isinstance(answer, Assignment) else ():
                results = choice.allocation.devices.results
                name = (
                    claim_name(self.pod, self.pod.spec.resource_claims[choice.position]) if choice.position >= 0 else ""
                )
                found[name or EXTENDED_RESOURCES] = [(r.request, r.driver, r.pool, r.device) for r in results]
        return found

    # --- the decision ---------------------------------------------------------------------------------------------

    @cached_property
    def decision(self) -> Decision:
        """What the scheduler would do."""
        return self.planner.decide(Job.of(self.pod), self.snapshot, 0.0)


def _reported(plugin: str, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The runtime adds the plugin to an error, but not to another refusal."""
    return tuple(Reason(error_text(plugin, each), each.code) if each.code is Code.ERROR else each for each in reasons)


def _status(reasons: tuple[Reason, ...]) -> Status:
    return code_of(reasons).label, frozenset(reason.text for reason in reasons)
