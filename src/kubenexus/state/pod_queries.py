"""Questions about pods that somebody asks, each with the counter that answers it; and which of them a pod moves.

There may be thousands, one or two for each workload, and a pod moves a handful. Most ask for one certain label: only
those whose label the pod has are looked at. What was found is remembered by the pod's namespace and the labels that
questions ask about, so that a pod with a label of its own costs no more than its siblings.
"""

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary, ref

from kubenexus.api.selectors import Operator
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.pods import PodRecord, PodStage

PodQuery = tuple[PodSelectorTerm, ...]  # pods that all of these terms select
Label = tuple[str, str]
_MOST_REMEMBERED = 4096


class PodQueries:
    """Only the columns of pods write here. A counter lives while somebody outside holds on to it. `answers` says
    whether a term means a pod."""

    def __init__(self, answers: Callable[[PodSelectorTerm, PodRecord], bool]) -> None:
        self._answers = answers
        self._counters: WeakValueDictionary[PodQuery, PodCounter] = WeakValueDictionary()
        self._by_label: dict[Label | None, WeakValueDictionary[PodQuery, PodCounter]] = {}
        self._moves: dict[tuple[Any, ...], list[Any]] = {}
        self._since_tidied = 0
        self.keys: tuple[str, ...] = ()  # labels that questions ask about; for a while also some that they did

    def __len__(self) -> int:
        return len(self._counters)

    def __iter__(self) -> Iterator[tuple[PodQuery, PodCounter]]:
        return iter(list(self._counters.items()))

    def get(self, question: PodQuery) -> PodCounter | None:
        return self._counters.get(question)

    def add(self, question: PodQuery, counter: PodCounter) -> None:
        self._counters[question] = counter
        self._by_label.setdefault(_certain_label(question), WeakValueDictionary())[question] = counter
        self._moves.clear()
        self._since_tidied += 1
        fresh = {key for term in question for key in term.selector.keys}.difference(self.keys)
        if fresh or 2 * self._since_tidied >= len(self._counters):
            self._tidy()

    def clear_matches(self) -> None:
        """Terms may mean other pods than before, as when a namespace has other labels."""
        self._moves.clear()

    def counters_for(self, record: PodRecord) -> list[Any]:
        """Weak references to the counters this pod moves: remembering must not keep a counter alive."""
        labels, waiting = record.labels, record.stage is PodStage.NOMINATED
        key = (record.namespace, record.terminating, waiting, *[labels.get(k) for k in self.keys])
        moved = self._moves.get(key)
        if moved is None:
            if len(self._moves) >= _MOST_REMEMBERED:
                self._moves.clear()
            moved = self._moves[key] = [ref(counter) for counter in self._concerned(record)]
        return moved

    def _concerned(self, record: PodRecord) -> Iterator[PodCounter]:
        for label in (None, *record.labels.items()):
            for question, counter in list(self._by_label.get(label, {}).items()):
                if all(self._answers(term, record) for term in question):
                    yield counter

    def _tidy(self) -> None:
        """What nobody asks about any more is forgotten. Not for each question: all of them are looked at."""
        self._since_tidied = 0
        self._by_label = {label: asked for label, asked in self._by_label.items() if asked}
        self.keys = tuple(sorted({key for asked in self._counters for term in asked for key in term.selector.keys}))


def _certain_label(question: PodQuery) -> Label | None:
    """A label that every pod must have to be counted, if there is one."""
    return next((label for term in question if (label := required_label(term)) is not None), None)


def required_label(term: PodSelectorTerm) -> Label | None:
    """A label that every pod the term selects must have, if there is one."""
    for wanted in term.selector.requirements:
        if wanted.op is Operator.IN and len(wanted.values) == 1:
            return wanted.key, wanted.values[0]
    return None
