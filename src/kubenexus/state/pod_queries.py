"""Queries about pods, each with the counter that answers it; and which counters a pod changes.

There may be thousands of queries, one or two for each workload, and a pod changes a handful of counters. Most queries
concern one namespace and require one label: only those are checked whose namespace and label the pod has. The result is
kept by the pod's namespace and by those of its labels that queries can see. So a pod with a label of its own costs no
more than its siblings, and a query of one tenant costs pods of other tenants nothing.

A query may also select all pods, and a tenant may have thousands of such queries. So a pod is checked against at most
`MAX_CHECKED` queries of at most `MAX_CHECKED_LENGTH` each, first against those that require the most of a pod. The
counters of all others become lazy (`state.lazy_counter`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary, ref

import numpy as np
from numpy.typing import NDArray

from kubenexus.api.selectors import NOTHING, Operator, Requirement
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.lazy_counter import LazyCounter, NamespaceChange, PodKey, PodMoves, make_eager, make_lazy
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.pods import PodRecord, PodStage

PodQuery = tuple[PodSelectorTerm, ...]  # pods that all of these terms select
Label = tuple[str, str]
_Place = tuple[str | None, str | None, str | None]  # namespace, key and value that a pod must have; None: any
_MAX_REMEMBERED = 1 << 17  # labels and counters in all results that are kept: about 10 MB
MAX_CHECKED: Final = 64  # queries that a pod is checked against; with counters of 5,000 nodes: 0.3 ms
MAX_CHECKED_LENGTH: Final = 32  # terms, requirements, and values in eights
_OTHER_VALUE: Final = "\0"  # stands for a value that no query names; no label has it
_NEEDS_LABEL = frozenset({Operator.IN, Operator.EXISTS, Operator.GT, Operator.LT})
_COMPARES = frozenset({Operator.GT, Operator.LT})


class MovedPod(NamedTuple):
    """A pod that was added or removed, as far as queries distinguish it."""

    namespace: str
    labels: Mapping[str, str]
    terminating: bool
    stage: PodStage


class PodQueries:
    """Written only by `PodColumns`. A counter lives while an object outside refers to it. `answers` returns whether a
    term selects a pod, and `count` counts the pods that a query selects by row.

    `_values` has, by label key, the values that queries distinguish; None: all of them. Until the next `_tidy` it also
    has those of queries that are gone.
    """

    def __init__(
        self,
        answers: Callable[[PodSelectorTerm, PodRecord | MovedPod], bool],
        count: Callable[[PodQuery], NDArray[np.int64]],
    ) -> None:
        self._answers = answers
        self.count = count
        self.moves = PodMoves()
        self._counters: WeakValueDictionary[PodQuery, PodCounter] = WeakValueDictionary()
        self._by_place: dict[_Place, WeakValueDictionary[PodQuery, PodCounter]] = {}
        # By key of a namespace's label: queries that select namespaces by it and have no lazy counter.
        self._by_namespace_key: dict[str, WeakValueDictionary[PodQuery, PodCounter]] = {}
        self._moves: dict[tuple[Any, ...], list[Any]] = {}
        self._remembered = 0
        self._since_tidied = 0
        self._values: dict[str, set[str] | None] = {}

    def __len__(self) -> int:
        return len(self._counters)

    def __iter__(self) -> Iterator[tuple[PodQuery, PodCounter]]:
        return iter(list(self._counters.items()))

    @property
    def keys(self) -> frozenset[str]:
        """The label keys that queries are about; for a while also those of queries that are gone."""
        return frozenset(self._values)

    def get(self, question: PodQuery) -> PodCounter | None:
        return self._counters.get(question)

    def add(self, question: PodQuery, counter: PodCounter) -> None:
        """Takes time by the length of this query; by that of all, once as many have come as half of those there are."""
        self._counters[question] = counter
        if _length(question) > MAX_CHECKED_LENGTH:
            make_lazy(counter, question, self)
        else:
            self._place_eager(question, counter)
        self.clear_matches()
        self._see(question)
        self._since_tidied += 1
        if 2 * self._since_tidied >= len(self._counters):
            self._tidy()

    def _place_eager(self, question: PodQuery, counter: PodCounter) -> None:
        self._by_place.setdefault(_place(question), WeakValueDictionary())[question] = counter
        for key in _namespace_keys(question):
            self._by_namespace_key.setdefault(key, WeakValueDictionary())[question] = counter

    def clear_matches(self) -> None:
        """Forgets which counters pods change, as when a namespace has other labels."""
        self._moves.clear()
        self._remembered = 0

    def sees_change(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Whether some query may be about a label that differs."""
        values = self._values
        return any(key in values for key, _ in before.items() ^ after.items())

    def counters_for(self, record: PodRecord) -> list[Any]:
        """Returns weak references to the counters that this pod changes, which leave out lazy ones. Keeping the result
        must not keep a counter alive."""
        key = self._key(record)
        moved = self._moves.get(key)
        if moved is None:
            moved = [ref(counter) for counter in self._concerned(record)]
            if self._remembered + len(key) + len(moved) > _MAX_REMEMBERED:
                self.clear_matches()
            self._remembered += len(key) + len(moved)
            self._moves[key] = moved
        return moved

    def log_move(self, record: PodRecord, row: int, delta: int) -> None:
        """Logs for lazy counters that this pod was added to the row or removed from it."""
        self.moves.mark += 1
        if self.moves.logging:
            self.moves.append(self._key(record), row, delta)

    def selects(self, question: PodQuery, key: PodKey) -> bool:
        """Returns whether the query selects pods of this key."""
        namespace, terminating, waiting, *visible = key
        labels = {label: _OTHER_VALUE if value is None else value for label, value in visible}
        stage = PodStage.NOMINATED if waiting else PodStage.BOUND
        pod = MovedPod(namespace, labels, terminating, stage)
        return all(self._answers(term, pod) for term in question)

    def concerns(self, question: PodQuery, change: NamespaceChange) -> bool:
        """Returns whether a term of the query applies to the namespace before the change and not after it, or the
        reverse."""
        name, before, after = change
        return any(term.covers(name, before) != term.covers(name, after) for term in question)

    def namespace_changed(self, change: NamespaceChange, pods: int) -> None:
        """Records other labels of a namespace that has so many pods on nodes.

        No query is checked here: an event must not cost more with thousands of them. The counters of those that name a
        label which changed are lazy until they are read, and their readers find out whether the change concerns them.
        """
        self.clear_matches()
        for key in self._changed_keys(change) if pods else ():
            for question in list(self._by_namespace_key.pop(key, ())):
                self.make_lazy(question, once=True)
        self.moves.mark += 1
        if self.moves.logging:
            self.moves.append(change)

    def _changed_keys(self, change: NamespaceChange) -> list[str]:
        if change.before is None or change.after is None:
            return list(self._by_namespace_key)
        before, after, asked = change.before, change.after, self._by_namespace_key
        if len(asked) < len(before) + len(after):  # a namespace has up to 110,000 labels
            return [key for key in asked if before.get(key) != after.get(key)]
        return [key for key in {**before, **after} if key in asked and before.get(key) != after.get(key)]

    def make_lazy(self, question: PodQuery, *, once: bool = False) -> None:
        """Makes the counter of this query lazy, if there is one that is not. `once`: only until it is read."""
        counter = self._counters.get(question)
        if counter is not None and not isinstance(counter, LazyCounter):
            self._by_place[_place(question)].pop(question, None)
            for key in _namespace_keys(question):
                if key in self._by_namespace_key:
                    self._by_namespace_key[key].pop(question, None)
            make_lazy(counter, question, self, once=once)
            self.clear_matches()

    def make_eager(self, question: PodQuery) -> None:
        """Makes pods change the counter of this query again. The counter is up to date."""
        counter = self._counters.get(question)
        if isinstance(counter, LazyCounter):
            make_eager(counter)
            self._place_eager(question, counter)
            self.clear_matches()

    def _key(self, record: PodRecord) -> PodKey:
        waiting = record.stage is PodStage.NOMINATED
        return (record.namespace, record.terminating, waiting, *self._visible(record.labels))

    def _visible(self, labels: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
        """The labels as far as queries distinguish them; None for a value that none of them names."""
        values = self._values
        for key, value in labels.items():
            if key in values:
                named = values[key]
                yield key, value if named is None or value in named else None

    def _concerned(self, record: PodRecord) -> list[PodCounter]:
        """Returns the counters that the pod changes. Makes those lazy that it is not checked against."""
        needed: list[tuple[str | None, str | None]] = [(None, None)]
        for key, value in record.labels.items():
            if key in self._values:
                needed += ((key, None), (key, value))
        places = [(namespace, *label) for label in needed for namespace in (None, record.namespace)]
        concerned, left = list[PodCounter](), MAX_CHECKED
        for place in reversed(places):
            asked = self._by_place.get(place)
            for question, counter in list(asked.items()) if asked else ():
                left -= 1
                if left < 0:
                    self.make_lazy(question)
                elif all(self._answers(term, record) for term in question):
                    concerned.append(counter)
        return concerned[::-1]

    def _see(self, question: PodQuery) -> None:
        for wanted in _requirements(question):
            if wanted.op in _COMPARES:
                self._values[wanted.key] = None
                continue
            named = self._values.setdefault(wanted.key, set())
            if named is not None:
                named.update(wanted.values)

    def _tidy(self) -> None:
        """Forgets what only queries that are gone were about."""
        self._since_tidied = 0
        self.moves.logging = any(isinstance(counter, LazyCounter) for counter in list(self._counters.values()))
        self._by_place = {place: asked for place, asked in self._by_place.items() if asked}
        self._by_namespace_key = {key: asked for key, asked in self._by_namespace_key.items() if asked}
        self._values = {}
        for question in list(self._counters):
            self._see(question)
        self.clear_matches()


def _length(question: PodQuery) -> int:
    """The number of terms and requirements of a query, and of its values in eights."""
    selectors = [selector for term in question for selector in (term.selector, term.namespace_selector)]
    wanted = [requirement for selector in selectors for requirement in selector.requirements]
    return len(question) + sum([1 + len(each.values) // 8 for each in wanted])


def _requirements(question: PodQuery) -> Iterable[Requirement]:
    return (wanted for term in question for wanted in term.selector.requirements)


def _namespace_keys(question: PodQuery) -> set[str]:
    return {wanted.key for term in question for wanted in term.namespace_selector.requirements}


def _place(question: PodQuery) -> _Place:
    """A namespace and a label that each counted pod must have, as far as the query requires one."""
    named = (term.namespaces for term in question if len(term.namespaces) == 1 and term.namespace_selector == NOTHING)
    namespace = next((only for namespaces in named for only in namespaces), None)
    label = next((label for term in question if (label := required_label(term)) is not None), None)
    if label is not None:
        return namespace, *label
    return namespace, next((wanted.key for wanted in _requirements(question) if wanted.op in _NEEDS_LABEL), None), None


def required_label(term: PodSelectorTerm) -> Label | None:
    """A label that every pod the term selects must have, if there is one."""
    for wanted in term.selector.requirements:
        if wanted.op is Operator.IN and len(wanted.values) == 1:
            return wanted.key, wanted.values[0]
    return None
