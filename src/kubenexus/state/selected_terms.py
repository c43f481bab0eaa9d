"""The terms of running pods that select a pod class, counted together by domain.

A class that thousands of terms select holds one counter for each topology label and effect, not the terms themselves.
Its size depends on the number of domains, and a carrier that comes or goes changes one domain.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kubenexus.state.affinity_terms import AffinityTerm
from kubenexus.state.carried_terms import CarriedTerms, Group, effect
from kubenexus.state.pod_counter import DomainCounter

_NO_ROWS: NDArray[np.int64] = np.zeros(0, np.int64)


class SelectedTerms:
    """The terms that select pods of one namespace with these labels. `counters` stay the same objects; `layout` grows
    when there is a further one."""

    __slots__ = ("__weakref__", "_carried", "_covered_by", "_labels", "_namespace", "_seen", "counters", "layout")

    def __init__(self, carried: CarriedTerms, namespace: str, labels: Mapping[str, str]) -> None:
        self._carried = carried
        self._namespace, self._labels = namespace, labels
        self._covered_by: Mapping[str, str] = {}
        self._seen = -1
        self.counters: dict[Group, DomainCounter] = {}
        self.layout = 0

    @property
    def nbytes(self) -> int:
        """The size of the counters."""
        return sum([counter.nbytes for counter in self.counters.values()])

    def includes(self, carried: AffinityTerm) -> bool:
        """Returns whether a term is among those that are counted here."""
        return self._carried.selects(carried, self._namespace, self._labels)

    def catch_up(self) -> None:
        """Counts the carriers that came and went since the last call: each of a few, or all of them again."""
        terms = self._carried
        if self._seen == terms.mark:
            return
        steps = terms.since(self._seen)
        self._seen = terms.mark
        labels = terms.namespaces.get(self._namespace, {})
        if steps is None or labels != self._covered_by:
            self._covered_by = labels
            self._recount()
            return
        for carried, row, delta in steps:
            if carried is not None and self.includes(carried):
                self._add(carried, row, delta)

    def _add(self, carried: AffinityTerm, row: int, delta: int) -> None:
        if self._carried.labels.rows_with(carried.topology):
            what, weight = effect(carried)
            group = (carried.topology, what)
            counter = self.counters.get(group)
            if counter is None:
                counter = self._open(group)
            if weight:
                counter.add(row, delta * weight)

    def _recount(self) -> None:
        found = self._carried.count(self._namespace, self._labels)
        for group in found:
            if group not in self.counters:
                self._open(group)
        for group, counter in self.counters.items():
            counter.set(found.get(group, _NO_ROWS))

    def _open(self, group: Group) -> DomainCounter:
        self.counters[group] = counter = DomainCounter(group[0], self._carried.labels)
        self.layout += 1
        return counter
