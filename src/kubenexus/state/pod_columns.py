"""Pods as columns (node, namespace, labels), and the counters over them.

A new query is answered by comparing columns over all pods. After that its counter follows each pod that is added or
removed (`queries`).
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.selectors import EVERYTHING, Requirement
from kubenexus.base.arrays import BoolColumn, grow
from kubenexus.state.affinity_terms import AffinityKind, AffinityTerm, PodSelectorTerm
from kubenexus.state.carried_terms import CarriedTerms
from kubenexus.state.existing_terms import ExistingTerms
from kubenexus.state.labels import LabelColumns, matching
from kubenexus.state.lazy_counter import NamespaceChange
from kubenexus.state.pod_counter import FewRows, PodCounter
from kubenexus.state.pod_queries import MovedPod, PodQueries, PodQuery
from kubenexus.state.pods import CONTROLLER, PodRecord, PodStage
from kubenexus.state.runtimes.expected_ends import ExpectedEnds
from kubenexus.state.selected_terms import SelectedTerms
from kubenexus.state.victim_columns import VictimColumns


class ExistingTerm:
    """An affinity term that pods on nodes carry, and the number of carriers on each row.

    A counter is made when a class first reads it. A tenant may run pods with a hundred thousand terms, of which classes
    read few by themselves (`selected_terms`).
    """

    __slots__ = ("_counter", "_labels", "_rows", "carried", "slot", "token", "total")

    def __init__(self, carried: AffinityTerm, labels: LabelColumns, slot: int) -> None:
        self.carried = carried
        self.slot = slot  # in `CarriedTerms`
        self.token = ""  # in signatures
        self.total = 0
        self._labels = labels
        self._rows: dict[int, int] = {}
        self._counter: FewRows | None = None

    def add(self, row: int, delta: int) -> None:
        self.total += delta
        if self._counter is not None:
            self._counter.add(row, delta)
            return
        now = self._rows.get(row, 0) + delta
        if now:
            self._rows[row] = now
        else:
            del self._rows[row]

    @property
    def counter(self) -> PodCounter:
        if self._counter is None:
            self._counter = FewRows(self._labels, self._rows)
            self._rows = {}
        return self._counter


class PodColumns:
    """All pods that count on nodes, by slot, with the counters of queries and of existing affinity terms. Only
    `NodeColumns` adds and removes pods."""

    def __init__(self, node_labels: LabelColumns) -> None:
        self._node_labels = node_labels
        self._row = np.full(64, -1, np.int64)
        self._namespace = np.zeros(64, np.int64)
        self._priority = np.zeros(64, np.int64)
        self._leaving = np.zeros(64, np.bool_)
        self._waiting = np.zeros(64, np.bool_)  # nominated: counted on its row only while others are tried
        self._labels = LabelColumns(64, always=(CONTROLLER,), keep_common=True)
        self._namespace_labels: dict[str, dict[str, str]] = {}
        self._pods_in: dict[str, int] = {}  # by namespace: pods that count on nodes
        self._namespace_codes: dict[str, int] = {}  # of the same namespaces
        self._free_codes: list[int] = []
        self._size = 0
        self._free: list[int] = []
        self._queries = PodQueries(self._answers, self._count_again)
        self.existing_terms: dict[AffinityTerm, ExistingTerm] = {}
        self._by_token: dict[str, ExistingTerm] = {}
        self.terms = ExistingTerms(self._namespace_labels)  # of pods that run or are nominated
        self.carried_terms = CarriedTerms(self._namespace_labels, node_labels)
        self.existing_terms_version = 0
        self._selected_terms: WeakValueDictionary[Hashable, SelectedTerms] = WeakValueDictionary()
        self._compared = 0
        self.victims = VictimColumns()
        self._budgets_changed: dict[str, None] = {}  # namespaces
        self.expected_ends = ExpectedEnds()

    @property
    def count(self) -> int:
        """The number of pods that count on nodes."""
        return self._size - len(self._free)

    def rows_below(self, priority: int, rows: int) -> BoolColumn:
        """Returns, for each of the first `rows` rows, whether a pod of lower priority counts there: a comparison over
        all pods, 0.1 ms for 100,000."""
        there = self._row[: self._size]
        found = np.zeros(rows, np.bool_)
        found[there[(there >= 0) & (self._priority[: self._size] < priority)]] = True
        return found

    @property
    def placed(self) -> tuple[Any, Any, Any]:
        """The row, the priority and the namespace's code of each slot; the row is -1 where no pod counts that may be
        evicted: the slot is free, or its pod is terminating, or only nominated."""
        size = self._size
        gone = self._leaving[:size] | self._waiting[:size]
        return np.where(gone, -1, self._row[:size]), self._priority[:size], self._namespace[:size]

    @property
    def rows(self) -> Any:
        """The row of each slot, -1 where no pod counts."""
        return self._row[: self._size]

    def with_terminating(self, ends: Any, at: float) -> Any:
        """Returns expected ends by slot, in which terminating pods end at `at`."""
        return np.where(self._leaving[: self._size], at, ends[: self._size])

    def is_terminating(self, slots: Any) -> Any:
        """Returns which of these slots' pods terminate."""
        return self._leaving[slots]

    @property
    def terminating(self) -> list[int]:
        """The slots of pods that count on rows and terminate."""
        found: list[int] = np.flatnonzero(self._leaving[: self._size] & (self._row[: self._size] >= 0)).tolist()
        return found

    def namespace_code(self, namespace: str) -> int:
        """Returns the code of a namespace with pods on nodes, else -1."""
        return self._namespace_codes.get(namespace, -1)

    def budgets_changed(self, namespace: str) -> None:
        """Records that a budget of a namespace came, went or selects other pods."""
        if namespace in self._namespace_codes:
            self._budgets_changed[namespace] = None

    def select_budgets(self) -> None:
        """Compares the pods of namespaces whose budgets changed with these: once for many changes."""
        for namespace in self._budgets_changed:
            code = self._namespace_codes.get(namespace, -1)
            there = (self._namespace[: self._size] == code) & (self._row[: self._size] >= 0)
            self.victims.select_again(namespace, np.flatnonzero(there))
        self._budgets_changed.clear()

    @property
    def namespaces(self) -> int:
        """The number of known namespaces."""
        return len(self._namespace_labels)

    @property
    def compared(self) -> int:
        """How many pods were compared with terms for new counters or to bring lazy ones up to date, or terms with a
        pod."""
        return self._compared + self.carried_terms.compared

    # --- pods are added and removed -------------------------------------------------------------------------------

    def add(self, record: PodRecord, row: int) -> None:
        slot = record.slot = self._free.pop() if self._free else self._open()
        self._row[slot], self._leaving[slot] = row, record.terminating
        self._waiting[slot] = record.stage is PodStage.NOMINATED
        self._namespace[slot] = self._enter(record.namespace)
        self._priority[slot] = record.priority
        self._labels.set(slot, record.labels)
        record.labels = self._labels.of_row(slot)  # one dict for both, with shared strings
        self.victims.add(slot, record)
        self.expected_ends.add(slot, record)
        self._move(record, row, +1)

    def remove(self, record: PodRecord, row: int) -> None:
        self._move(record, row, -1)
        self.victims.remove(record.slot)
        self.expected_ends.remove(record.slot)
        self._row[record.slot] = -1
        self._labels.set(record.slot, {})
        self._free.append(record.slot)
        record.slot = -1
        self._leave(record.namespace)

    def pod_ended(self, pod: Pod) -> None:
        """Learns how long pods like this one run, if it counts on a node and has ended by itself."""
        if pod.metadata.uid in self.victims.slot_of:
            self.expected_ends.ended(pod)

    def relabel(self, record: PodRecord, labels: dict[str, str]) -> bool:
        """Sets the labels of a pod that already counts. Returns False, and changes nothing, if a counter depends on a
        label that changed: the caller then removes the pod and adds it again."""
        if labels == record.labels:
            return True
        if self._queries.sees_change(record.labels, labels):
            return False
        record.labels = labels
        if record.slot >= 0:
            self._labels.set(record.slot, labels)
            record.labels = self._labels.of_row(record.slot)
        return True

    def _enter(self, namespace: str) -> int:
        """Counts one more pod of the namespace. Returns the namespace's code, which it has while pods are in it."""
        self._pods_in[namespace] = self._pods_in.get(namespace, 0) + 1
        code = self._namespace_codes.get(namespace)
        if code is None:
            code = self._free_codes.pop() if self._free_codes else len(self._namespace_codes)
            self._namespace_codes[namespace] = code
        return code

    def _leave(self, namespace: str) -> None:
        self._pods_in[namespace] -= 1
        if not self._pods_in[namespace]:
            del self._pods_in[namespace]
            self._free_codes.append(self._namespace_codes.pop(namespace))

    def _open(self) -> int:
        if self._size == len(self._row):
            capacity = 2 * self._size
            self._row, self._namespace = grow(self._row, capacity, -1), grow(self._namespace, capacity)
            self._priority = grow(self._priority, capacity)
            self._leaving, self._waiting = grow(self._leaving, capacity), grow(self._waiting, capacity)
            self._labels.grow(capacity)
            self.victims.grow(capacity)
            self.expected_ends.grow(capacity)
        self._size += 1
        return self._size - 1

    def _move(self, record: PodRecord, row: int, delta: int) -> None:
        if self._queries:
            for reference in self._queries.counters_for(record):
                counter = reference()
                if counter is not None:
                    counter.add(row, delta)
            self._queries.log_move(record, row, delta)
        # In reverse order, so that the marks are restored.
        for carried in record.terms if delta > 0 else reversed(record.terms):
            self._carry(carried, row, delta)

    def _answers(self, term: PodSelectorTerm, record: PodRecord | MovedPod) -> bool:
        if (term.skip_terminating and record.terminating) or (
            term.nominated_only and record.stage is not PodStage.NOMINATED
        ):
            return False
        known = self._namespace_labels.get(record.namespace)
        return term.covers(record.namespace, known) and term.selector.matches(record.labels)

    def _carry(self, carried: AffinityTerm, row: int, delta: int) -> None:
        existing_term = self.existing_terms.get(carried)
        if existing_term is None:
            existing_term = ExistingTerm(carried, self._node_labels, self.carried_terms.add(carried))
            self.existing_terms[carried] = existing_term
            self.existing_terms_version += 1
            existing_term.token = self.terms.change(carried, +1)
            self._by_token[existing_term.token] = existing_term
        existing_term.add(row, delta)
        self.carried_terms.move(carried, existing_term.slot, row, delta)
        if not existing_term.total:
            self.carried_terms.remove(carried, existing_term.slot)
            del self.existing_terms[carried]
            del self._by_token[existing_term.token]
            self.existing_terms_version += 1
            self.terms.change(carried, -1)

    def nominated(self, record: PodRecord, by: int) -> None:
        """Records that a pod is nominated to a node (+1), or no longer (-1). Its required anti-affinity counts while it
        is tried on the node, so every other pod's class must depend on it."""
        for carried in record.terms if by > 0 else reversed(record.terms):
            if carried.kind is AffinityKind.REQUIRED_ANTI_AFFINITY:
                self.terms.change(carried, by)

    # --- queries --------------------------------------------------------------------------------------------------

    def counter(self, question: PodQuery) -> PodCounter:
        """Returns the counter of the pods that all these terms select, by row. It is kept up to date while the caller
        holds a reference to it."""
        counter = self._queries.get(question)
        if counter is None:
            counter = PodCounter(self._count_again(question), self._node_labels)
            self._queries.add(question, counter)
        return counter

    def _count_again(self, question: PodQuery) -> Any:
        """Counts the pods of a new counter, or again those of a lazy one."""
        self._compared += self._size * len(question)
        return self._count(question)

    def _count(self, question: PodQuery) -> Any:
        there = self._row[: self._size] >= 0
        for term in question:
            there &= self._selected(term)
        return np.bincount(self._row[: self._size][there], minlength=64)

    def _selected(self, term: PodSelectorTerm) -> BoolColumn:
        if term.selector.nothing:
            return np.zeros(self._size, np.bool_)
        found = self._within(term)
        if term.skip_terminating:
            found &= ~self._leaving[: self._size]
        if term.nominated_only:
            found &= self._waiting[: self._size]
        for wanted in term.selector.requirements:
            found &= self._labelled(wanted)
        return found

    def _within(self, term: PodSelectorTerm) -> BoolColumn:
        """Returns which slots are of pods in the term's namespaces. A term that only names its namespaces costs the
        same however many others have pods."""
        namespaces, codes = self._namespace[: self._size], self._namespace_codes
        if term.namespace_selector == EVERYTHING:
            return np.ones(self._size, np.bool_)
        named = term.namespace_selector.nothing
        among = term.namespaces if named else codes
        covered = [name for name in among if name in codes and self.covers(term, name)]
        if len(covered) == 1:
            return np.equal(namespaces, codes[covered[0]])
        meant = np.zeros(len(codes) + len(self._free_codes), np.bool_)
        meant[[codes[name] for name in covered]] = True
        found: BoolColumn = meant[namespaces]
        return found

    def covers(self, term: PodSelectorTerm, namespace: str) -> bool:
        """Returns whether a term applies to the pods of this namespace."""
        return term.covers(namespace, self._namespace_labels.get(namespace))

    def _labelled(self, wanted: Requirement) -> Any:
        column = self._labels.column(wanted.key)
        return matching(wanted, column.codes[: self._size], column)

    def carriers_of(self, tokens: Iterable[str]) -> list[ExistingTerm]:
        """Returns the existing terms with these tokens that pods carry now."""
        return [self._by_token[token] for token in tokens if token in self._by_token]

    def selected_terms(self, namespace: str, labels: Mapping[str, str]) -> SelectedTerms:
        """Returns the existing terms that select pods of this namespace with these labels, counted by domain. Callers
        with equal arguments share them while one of them holds a reference."""
        key = (namespace, frozenset(labels.items()))
        found = self._selected_terms.get(key)
        if found is None:
            found = self._selected_terms[key] = SelectedTerms(self.carried_terms, namespace, labels)
        return found

    # --- audit ------------------------------------------------------------------------------------------------------

    @property
    def queries(self) -> list[PodQuery]:
        """The queries that have a counter now."""
        return [question for question, _ in self._queries]

    def differences(self, question: PodQuery) -> list[tuple[int, int, int]]:
        """Returns where a counter differs from a count over all pods (see `PodCounter.differences`). Writes nothing."""
        counter = self._queries.get(question)
        return [] if counter is None else counter.differences(self._count(question))

    def recount(self, question: PodQuery) -> None:
        counter = self._queries.get(question)
        if counter is not None:
            counter.set(self._count(question))

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        """Returns the labels of a namespace; none if it is not known."""
        return self._namespace_labels.get(namespace, {})

    def has_pods(self, namespace: str) -> bool:
        """Returns whether a pod of this namespace counts on a node."""
        return namespace in self._pods_in

    # --- other changes that concern counters ----------------------------------------------------------------------

    def upsert_namespace(self, name: str, labels: dict[str, str] | None) -> None:
        """Sets a namespace's labels (None: it is gone). Costs the same for any queries and pods: queries that
        select namespaces by label are counted again when they are read."""
        before = self._namespace_labels.get(name)
        if before == labels:
            return
        if labels is None:
            del self._namespace_labels[name]
        else:
            self._namespace_labels[name] = labels
        self._queries.namespace_changed(NamespaceChange(name, before, labels), self._pods_in.get(name, 0))
        self.terms.namespace_changed(name, fresh=before is None)
        self.carried_terms.namespace_changed()
        self.existing_terms_version += 1

    def node_removed(self) -> None:
        """A node without pods is gone. Lazy counters that have not counted its pods out yet cannot tell their domains
        any more."""
        self._queries.moves.oldest = self._queries.moves.mark
        self.carried_terms.nodes_relabelled()

    def node_relabelled(self) -> None:
        """A node came or has other labels. The counters of existing terms find out when they are next used."""
        self.carried_terms.nodes_relabelled()
        for _, counter in self._queries:
            counter.relabelled()
