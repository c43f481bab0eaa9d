"""Queries about pods, each with the counter that answers it; and which counters a pod changes.

There may be thousands of queries, one or two for each workload, and a pod changes a handful of counters. Most queries
concern one namespace and require one label: only those are checked whose namespace and label the pod has. The result is
kept by the pod's namespace and by those of its labels that queries can see. So a pod with a label of its own costs no
more than its siblings, and a query of one tenant costs pods of other tenants nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary, ref

from kubenexus.api.selectors import NOTHING, Operator, Requirement
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.pods import PodRecord, PodStage

PodQuery = tuple[PodSelectorTerm, ...]  # pods that all of these terms select
Label = tuple[str, str]
_Place = tuple[str | None, str | None, str | None]  # namespace, key and value that a pod must have; None: any
_MAX_REMEMBERED = 1 << 17  # labels and counters in all results that are kept: about 10 MB
_NEEDS_LABEL = frozenset({Operator.IN, Operator.EXISTS, Operator.GT, Operator.LT})
_COMPARES = frozenset({Operator.GT, Operator.LT})


class PodQueries:
    """Written only by `PodColumns`. A counter lives while an object outside refers to it. `answers` returns whether a
    term selects a pod.

    `_values` has, by label key, the values that queries distinguish; None: all of them. Until the next `_tidy` it also
    has those of queries that are gone.
    """

    def __init__(self, answers: Callable[[PodSelectorTerm, PodRecord], bool]) -> None:
        self._answers = answers
        self._counters: WeakValueDictionary[PodQuery, PodCounter] = WeakValueDictionary()
        self._by_place: dict[_Place, WeakValueDictionary[PodQuery, PodCounter]] = {}
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
        self._by_place.setdefault(_place(question), WeakValueDictionary())[question] = counter
        self.clear_matches()
        self._see(question)
        self._since_tidied += 1
        if 2 * self._since_tidied >= len(self._counters):
            self._tidy()

    def clear_matches(self) -> None:
        """Forgets which counters pods change, as when a namespace has other labels."""
        self._moves.clear()
        self._remembered = 0

    def sees_change(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Whether some query may be about a label that differs."""
        values = self._values
        return any(key in values for key, _ in before.items() ^ after.items())

    def counters_for(self, record: PodRecord) -> list[Any]:
        """Weak references to the counters that this pod changes: keeping the result must not keep a counter alive."""
        waiting = record.stage is PodStage.NOMINATED
        key = (record.namespace, record.terminating, waiting, *self._visible(record.labels))
        moved = self._moves.get(key)
        if moved is None:
            moved = [ref(counter) for counter in self._concerned(record)]
            if self._remembered + len(key) + len(moved) > _MAX_REMEMBERED:
                self.clear_matches()
            self._remembered += len(key) + len(moved)
            self._moves[key] = moved
        return moved

    def _visible(self, labels: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
        """The labels as far as queries distinguish them; None for a value that none of them names."""
        values = self._values
        for key, value in labels.items():
            if key in values:
                named = values[key]
                yield key, value if named is None or value in named else None

    def _concerned(self, record: PodRecord) -> Iterator[PodCounter]:
        needed: list[tuple[str | None, str | None]] = [(None, None)]
        for key, value in record.labels.items():
            if key in self._values:
                needed += ((key, None), (key, value))
        for label in needed:
            for namespace in (None, record.namespace):
                for question, counter in list(self._by_place.get((namespace, *label), {}).items()):
                    if all(self._answers(term, record) for term in question):
                        yield counter

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
        self._by_place = {place: asked for place, asked in self._by_place.items() if asked}
        self._values = {}
        for question in list(self._counters):
            self._see(question)
        self.clear_matches()


def _requirements(question: PodQuery) -> Iterable[Requirement]:
    return (wanted for term in question for wanted in term.selector.requirements)


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
