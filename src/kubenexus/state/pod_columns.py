"""Pods as columns: where each runs, in which namespace, with which labels; and the counters over them.

A question that nobody asked before is answered by comparing columns over all pods; after that its counter follows
each pod that comes or goes (`queries`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.selectors import Requirement
from kubenexus.base.arrays import BoolColumn
from kubenexus.base.intern import UNKNOWN, Interner
from kubenexus.state.affinity_terms import AffinityKind, AffinityTerm, PodSelectorTerm
from kubenexus.state.existing_terms import ExistingTerms, SelectorValues
from kubenexus.state.labels import LabelColumns, matching
from kubenexus.state.pod_counter import FewRows, PodCounter
from kubenexus.state.pod_queries import PodQueries, PodQuery
from kubenexus.state.pods import PodRecord, PodStage
from kubenexus.state.resources import grow_rows


class ExistingTerm:
    """A term that pods on the cluster carry, and how many carry it on each row."""

    __slots__ = ("carried", "counter")

    def __init__(self, carried: AffinityTerm, counter: PodCounter) -> None:
        self.carried = carried
        self.counter = counter


class PodColumns:
    def __init__(self, node_labels: LabelColumns) -> None:
        self._node_labels = node_labels
        self._row = np.full(64, -1, np.int64)
        self._namespace = np.zeros(64, np.int64)
        self._leaving = np.zeros(64, np.bool_)
        self._waiting = np.zeros(64, np.bool_)  # nominated, and laid on its row while others are tried
        self._labels = LabelColumns(64)
        self._namespaces = Interner()
        self._namespace_labels: dict[str, dict[str, str]] = {}
        self._size = 0
        self._free: list[int] = []
        self._queries = PodQueries(self._answers)
        self.existing_terms: dict[AffinityTerm, ExistingTerm] = {}
        self._by_token: dict[str, ExistingTerm] = {}
        self.terms = ExistingTerms(self._namespace_labels)  # of pods that run or are nominated
        self.existing_terms_version = 0

    @property
    def count(self) -> int:
        """How many pods are on nodes now."""
        return self._size - len(self._free)

    @property
    def namespaces(self) -> int:
        """How many namespaces are known."""
        return len(self._namespace_labels)

    # --- pods come and go -----------------------------------------------------------------------------------------

    def add(self, record: PodRecord, row: int) -> None:
        slot = record.slot = self._free.pop() if self._free else self._open()
        self._row[slot], self._leaving[slot] = row, record.terminating
        self._waiting[slot] = record.stage is PodStage.NOMINATED
        self._namespace[slot] = self._namespaces.code(record.namespace)
        self._labels.set(slot, record.labels)
        record.labels = self._labels.of_row(slot)  # one dict for both, with shared strings
        self._move(record, row, +1)

    def remove(self, record: PodRecord, row: int) -> None:
        self._move(record, row, -1)
        self._row[record.slot] = -1
        self._labels.set(record.slot, {})
        self._free.append(record.slot)
        record.slot = -1

    def relabel(self, record: PodRecord, labels: dict[str, str]) -> bool:
        """A pod that counts already has these labels now. False, and nothing is done, if some counter asks about what
        changed: then it has to leave and enter again."""
        if labels == record.labels:
            return True
        if any(labels.get(key) != record.labels.get(key) for key in self._queries.keys):
            return False
        record.labels = labels
        if record.slot >= 0:
            self._labels.set(record.slot, labels)
            record.labels = self._labels.of_row(record.slot)
        return True

    def _open(self) -> int:
        if self._size == len(self._row):
            capacity = 2 * self._size
            self._row, self._namespace = grow_rows(self._row, capacity), grow_rows(self._namespace, capacity)
            self._leaving = np.concatenate([self._leaving, np.zeros_like(self._leaving)])
            self._waiting = np.concatenate([self._waiting, np.zeros_like(self._waiting)])
            self._row[self._size :] = -1
            self._labels.grow(capacity)
        self._size += 1
        return self._size - 1

    def _move(self, record: PodRecord, row: int, delta: int) -> None:
        if self._queries:
            for reference in self._queries.counters_for(record):
                counter = reference()
                if counter is not None:
                    counter.add(row, delta)
        for carried in record.terms if delta > 0 else reversed(record.terms):  # as they came, to be as before
            self._carry(carried, row, delta)

    def _answers(self, term: PodSelectorTerm, record: PodRecord) -> bool:
        if (term.skip_terminating and record.terminating) or (
            term.nominated_only and record.stage is not PodStage.NOMINATED
        ):
            return False
        known = self._namespace_labels.get(record.namespace)
        return term.covers(record.namespace, known) and term.selector.matches(record.labels)

    def _carry(self, carried: AffinityTerm, row: int, delta: int) -> None:
        existing_term = self.existing_terms.get(carried)
        if existing_term is None:
            existing_term = self.existing_terms[carried] = ExistingTerm(carried, FewRows(self._node_labels))
            self.existing_terms_version += 1
            self.terms.change(carried, +1)
            self._by_token[self.terms.token(carried)] = existing_term
        existing_term.counter.add(row, delta)
        if not existing_term.counter.total:
            del self.existing_terms[carried]
            del self._by_token[self.terms.token(carried)]
            self.existing_terms_version += 1
            self.terms.change(carried, -1)

    def nominated(self, record: PodRecord, by: int) -> None:
        """A pod waits for a node (+1), or no longer does (-1). While it is tried there its terms count, too: whether
        they speak of a pod has to be known of every pod that meets it."""
        for carried in record.terms if by > 0 else reversed(record.terms):
            if carried.kind is AffinityKind.REQUIRED_ANTI_AFFINITY:
                self.terms.change(carried, by)

    # --- questions ------------------------------------------------------------------------------------------------

    def counter(self, question: PodQuery) -> PodCounter:
        """Pods that all these terms select, by row. Hold on to it while you need it."""
        counter = self._queries.get(question)
        if counter is None:
            counter = PodCounter(self._count(question), self._node_labels)
            self._queries.add(question, counter)
        return counter

    def _count(self, question: PodQuery) -> Any:
        there = self._row[: self._size] >= 0
        for term in question:
            there &= self._selected(term)
        return np.bincount(self._row[: self._size][there], minlength=64)

    def _selected(self, term: PodSelectorTerm) -> BoolColumn:
        covered = np.array([self.covers(term, name) for name in self._namespaces.names])
        found: BoolColumn = covered[self._namespace[: self._size]]
        if term.selector.nothing:
            return np.zeros(self._size, np.bool_)
        if term.skip_terminating:
            found &= ~self._leaving[: self._size]
        if term.nominated_only:
            found &= self._waiting[: self._size]
        for wanted in term.selector.requirements:
            found &= self._labelled(wanted)
        return found

    def covers(self, term: PodSelectorTerm, namespace: str) -> bool:
        """Whether a term means the pods of this namespace."""
        return term.covers(namespace, self._namespace_labels.get(namespace))

    def _labelled(self, wanted: Requirement) -> Any:
        column = self._labels.column(wanted.key)
        return matching(wanted, column.codes[: self._size], column)

    def carriers_of(self, said: SelectorValues, namespace: str) -> list[ExistingTerm]:
        """The terms that pods carry now, among those that were said to speak of a pod of this namespace."""
        tokens = self.terms.meaning(namespace, said) if isinstance(said, Mapping) else said
        return [self._by_token[token] for token in tokens if token in self._by_token]

    # --- counting anew ----------------------------------------------------------------------------------------------

    @property
    def queries(self) -> list[PodQuery]:
        """Those that somebody asks now."""
        return [question for question, _ in self._queries]

    def differences(self, question: PodQuery) -> list[tuple[int, int, int]]:
        """Where a counter does not hold what all pods give (see `PodCounter.differences`). Nothing is written."""
        counter = self._queries.get(question)
        return [] if counter is None else counter.differences(self._count(question))

    def recount(self, question: PodQuery) -> None:
        counter = self._queries.get(question)
        if counter is not None:
            counter.set(self._count(question))

    def has_met(self, namespace: str) -> bool:
        """Whether a pod of this namespace has ever been on a node."""
        return self._namespaces.find(namespace) != UNKNOWN

    # --- what else changes the answers ----------------------------------------------------------------------------

    def upsert_namespace(self, name: str, labels: dict[str, str] | None) -> None:
        """A namespace's labels (None: it is gone). Counters that select namespaces by label are counted again."""
        if self._namespace_labels.get(name) == labels:
            return
        fresh = name not in self._namespace_labels
        if labels is None:
            del self._namespace_labels[name]
        else:
            self._namespace_labels[name] = labels
        self._queries.clear_matches()
        self.terms.namespace_changed(name, fresh=fresh)
        self.existing_terms_version += 1
        for question, counter in self._queries:
            if any(term.namespace_selector.requirements for term in question):
                counter.set(self._count(question))

    def node_relabelled(self) -> None:
        if not self._queries and not self.existing_terms:
            return  # as while the first nodes are listed
        for _, counter in self._queries:
            counter.relabelled()
        for existing_term in self.existing_terms.values():
            existing_term.counter.relabelled()
