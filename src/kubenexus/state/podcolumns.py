"""Pods as columns: where each runs, in which namespace, with which labels; and the counters over them.

A question that nobody asked before is answered by comparing columns over all pods; after that its counter follows
each pod that comes or goes (`questions`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.selectors import Requirement
from kubenexus.base.intern import UNKNOWN, Interner
from kubenexus.base.numbers import BoolColumn
from kubenexus.state.carriedterms import CarriedTerms, Said
from kubenexus.state.counters import Counter, FewRows
from kubenexus.state.labels import LabelColumns, holds
from kubenexus.state.pods import PodRecord, Stage
from kubenexus.state.podterms import Carried, Kind, Term
from kubenexus.state.questions import Question, Questions
from kubenexus.state.resources import widen


class Carrier:
    """A term that pods on the cluster carry, and how many carry it on each row."""

    __slots__ = ("carried", "counter")

    def __init__(self, carried: Carried, counter: Counter) -> None:
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
        self._questions = Questions(self._answers)
        self.carriers: dict[Carried, Carrier] = {}
        self._by_token: dict[str, Carrier] = {}
        self.terms = CarriedTerms(self._namespace_labels)  # of pods that run or are nominated
        self.carrier_version = 0

    @property
    def count(self) -> int:
        """How many pods are on nodes now."""
        return self._size - len(self._free)

    @property
    def namespaces(self) -> int:
        """How many namespaces are known."""
        return len(self._namespace_labels)

    # --- pods come and go -----------------------------------------------------------------------------------------

    def enter(self, record: PodRecord, row: int) -> None:
        slot = record.slot = self._free.pop() if self._free else self._open()
        self._row[slot], self._leaving[slot] = row, record.terminating
        self._waiting[slot] = record.stage is Stage.NOMINATED
        self._namespace[slot] = self._namespaces.code(record.namespace)
        self._labels.set(slot, record.labels)
        record.labels = self._labels.of_row(slot)  # one dict for both, with shared strings
        self._move(record, row, +1)

    def leave(self, record: PodRecord, row: int) -> None:
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
        if any(labels.get(key) != record.labels.get(key) for key in self._questions.keys):
            return False
        record.labels = labels
        if record.slot >= 0:
            self._labels.set(record.slot, labels)
            record.labels = self._labels.of_row(record.slot)
        return True

    def _open(self) -> int:
        if self._size == len(self._row):
            capacity = 2 * self._size
            self._row, self._namespace = widen(self._row, capacity), widen(self._namespace, capacity)
            self._leaving = np.concatenate([self._leaving, np.zeros_like(self._leaving)])
            self._waiting = np.concatenate([self._waiting, np.zeros_like(self._waiting)])
            self._row[self._size :] = -1
            self._labels.grow(capacity)
        self._size += 1
        return self._size - 1

    def _move(self, record: PodRecord, row: int, delta: int) -> None:
        if self._questions:
            for reference in self._questions.moved_by(record):
                counter = reference()
                if counter is not None:
                    counter.add(row, delta)
        for carried in record.terms if delta > 0 else reversed(record.terms):  # as they came, to be as before
            self._carry(carried, row, delta)

    def _answers(self, term: Term, record: PodRecord) -> bool:
        if (term.living and record.terminating) or (term.waiting and record.stage is not Stage.NOMINATED):
            return False
        known = self._namespace_labels.get(record.namespace)
        return term.covers(record.namespace, known) and term.selector.matches(record.labels)

    def _carry(self, carried: Carried, row: int, delta: int) -> None:
        carrier = self.carriers.get(carried)
        if carrier is None:
            carrier = self.carriers[carried] = Carrier(carried, FewRows(self._node_labels))
            self.carrier_version += 1
            self.terms.change(carried, +1)
            self._by_token[self.terms.token(carried)] = carrier
        carrier.counter.add(row, delta)
        if not carrier.counter.total:
            del self.carriers[carried]
            del self._by_token[self.terms.token(carried)]
            self.carrier_version += 1
            self.terms.change(carried, -1)

    def nominated(self, record: PodRecord, by: int) -> None:
        """A pod waits for a node (+1), or no longer does (-1). While it is tried there its terms count, too: whether
        they speak of a pod has to be known of every pod that meets it."""
        for carried in record.terms if by > 0 else reversed(record.terms):
            if carried.kind is Kind.MUST_AVOID:
                self.terms.change(carried, by)

    # --- questions ------------------------------------------------------------------------------------------------

    def counter(self, question: Question) -> Counter:
        """Pods that all these terms select, by row. Hold on to it while you need it."""
        counter = self._questions.get(question)
        if counter is None:
            counter = Counter(self._count(question), self._node_labels)
            self._questions.add(question, counter)
        return counter

    def _count(self, question: Question) -> Any:
        there = self._row[: self._size] >= 0
        for term in question:
            there &= self._selected(term)
        return np.bincount(self._row[: self._size][there], minlength=64)

    def _selected(self, term: Term) -> BoolColumn:
        covered = np.array([self.covers(term, name) for name in self._namespaces.names])
        found: BoolColumn = covered[self._namespace[: self._size]]
        if term.selector.nothing:
            return np.zeros(self._size, np.bool_)
        if term.living:
            found &= ~self._leaving[: self._size]
        if term.waiting:
            found &= self._waiting[: self._size]
        for wanted in term.selector.requirements:
            found &= self._labelled(wanted)
        return found

    def covers(self, term: Term, namespace: str) -> bool:
        """Whether a term means the pods of this namespace."""
        return term.covers(namespace, self._namespace_labels.get(namespace))

    def _labelled(self, wanted: Requirement) -> Any:
        column = self._labels.column(wanted.key)
        return holds(wanted, column.codes[: self._size], column)

    def carriers_of(self, said: Said, namespace: str) -> list[Carrier]:
        """The terms that pods carry now, among those that were said to speak of a pod of this namespace."""
        tokens = self.terms.meaning(namespace, said) if isinstance(said, Mapping) else said
        return [self._by_token[token] for token in tokens if token in self._by_token]

    # --- counting anew ----------------------------------------------------------------------------------------------

    @property
    def questions(self) -> list[Question]:
        """Those that somebody asks now."""
        return [question for question, _ in self._questions]

    def differences(self, question: Question) -> list[tuple[int, int, int]]:
        """Where a counter does not hold what all pods give (see `Counter.differences`). Nothing is written."""
        counter = self._questions.get(question)
        return [] if counter is None else counter.differences(self._count(question))

    def count_anew(self, question: Question) -> None:
        counter = self._questions.get(question)
        if counter is not None:
            counter.set(self._count(question))

    def has_met(self, namespace: str) -> bool:
        """Whether a pod of this namespace has ever been on a node."""
        return self._namespaces.find(namespace) != UNKNOWN

    # --- what else changes the answers ----------------------------------------------------------------------------

    def namespace_seen(self, name: str, labels: dict[str, str] | None) -> None:
        """A namespace's labels (None: it is gone). Counters that select namespaces by label are counted again."""
        if self._namespace_labels.get(name) == labels:
            return
        fresh = name not in self._namespace_labels
        if labels is None:
            del self._namespace_labels[name]
        else:
            self._namespace_labels[name] = labels
        self._questions.meanings_changed()
        self.terms.namespace_changed(name, fresh=fresh)
        self.carrier_version += 1
        for question, counter in self._questions:
            if any(term.everywhere.requirements for term in question):
                counter.set(self._count(question))

    def node_relabelled(self) -> None:
        if not self._questions and not self.carriers:
            return  # as while the first nodes are listed
        for _, counter in self._questions:
            counter.relabelled()
        for carrier in self.carriers.values():
            carrier.counter.relabelled()
