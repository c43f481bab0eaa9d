"""The affinity terms that pods on nodes carry, as columns: which terms select a pod, and where their carriers are.

A tenant may run pods with a hundred thousand terms that select all pods. To check them one by one for each pod class
would take a second each. Here a term is a slot. For each label a pod may have, an array holds the slots of the terms
that require it, and another those of the terms that exclude it. A pod's terms are then found by adding up a few arrays.
"""

import enum
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kubenexus.api.selectors import Operator, Requirement
from kubenexus.base.arrays import BoolColumn, IntColumn, grow
from kubenexus.state.affinity_terms import AffinityKind, AffinityTerm
from kubenexus.state.labels import LabelColumns

MAX_LOGGED: Final = 64  # carriers that come and go between two readings; to count all again costs less than more
_NEVER: Final = -1  # the number of met requirements of a term that selects nothing, or of an empty slot
_MANY_GROUPS: Final = 8
_FIRST: Final = 64


class Effect(enum.IntEnum):
    """What a term of a running pod does to the nodes of its domain, for pods that the term selects."""

    FORBIDS = 0  # required anti-affinity
    ADDS = 1  # preferred affinity: its weight in points
    SUBTRACTS = 2  # preferred anti-affinity
    JOINS = 3  # required affinity: `hardPodAffinityWeight` points


Group = tuple[str, Effect]  # a topology label, and what the terms do
Step = tuple[AffinityTerm | None, int, int]  # a term, the row of a carrier and +1 or -1; None: labels of a namespace


def effect(carried: AffinityTerm) -> tuple[Effect, int]:
    """Returns what a term does, and how often it counts for each carrier."""
    kind = carried.kind
    if kind is AffinityKind.REQUIRED_ANTI_AFFINITY:
        return Effect.FORBIDS, 1
    if kind is AffinityKind.REQUIRED_AFFINITY:
        return Effect.JOINS, 1
    adds = (kind is AffinityKind.PREFERRED_AFFINITY) == (carried.weight > 0)
    return Effect.ADDS if adds else Effect.SUBTRACTS, abs(carried.weight)


class _Slots:
    """Slots by label: those of the terms that name a value of a key, or the key alone (None)."""

    def __init__(self) -> None:
        self._named: dict[str, dict[str | None, int | dict[int, None]]] = {}  # a single slot needs no dict
        self._arrays: dict[tuple[str, str | None], NDArray[np.intp]] = {}

    def add(self, key: str, value: str | None, slot: int) -> None:
        named = self._named.setdefault(key, {})
        held = named.get(value)
        if held is None:
            named[value] = slot
        elif isinstance(held, int):
            named[value] = {held: None, slot: None}
        else:
            held[slot] = None
        self._arrays.pop((key, value), None)

    def remove(self, key: str, value: str | None, slot: int) -> None:
        named = self._named[key]
        held = named[value]
        if isinstance(held, dict):
            del held[slot]
        if not isinstance(held, dict) or not held:
            del named[value]
        if not named:
            del self._named[key]
        self._arrays.pop((key, value), None)

    def arrays(self, labels: Mapping[str, str]) -> Iterable[NDArray[np.intp]]:
        """Yields the slots that name these labels, by value and by key. Each array has a slot once."""
        for key, value in labels.items():
            if key in self._named:
                yield from (self._array(key, each) for each in (value, None) if each in self._named[key])

    def _array(self, key: str, value: str | None) -> NDArray[np.intp]:
        found = self._arrays.get((key, value))
        if found is None:
            held = self._named[key][value]
            several = [held] if isinstance(held, int) else held
            found = np.fromiter(several, np.intp, len(several))
            if len(found) > 1:
                self._arrays[key, value] = found
        return found


class _Condition:
    """Which slots the labels of an object satisfy: its required labels are counted, and none is excluded."""

    def __init__(self) -> None:
        self._required, self._excluded = _Slots(), _Slots()
        self.needed = np.full(_FIRST, _NEVER, np.int32)  # by slot: how many required labels

    def set(self, slot: int, wanted: Sequence[Requirement]) -> None:
        if not wanted:
            self.needed[slot] = 0
            return
        required, excluded = _sides(wanted)
        for key, values in required.items():
            for value in values:
                self._required.add(key, value, slot)
        for key, value in excluded:
            self._excluded.add(key, value, slot)
        self.needed[slot] = len(required)

    def clear(self, slot: int, wanted: Sequence[Requirement]) -> None:
        self.needed[slot] = _NEVER
        if not wanted:
            return
        required, excluded = _sides(wanted)
        for key, values in required.items():
            for value in values:
                self._required.remove(key, value, slot)
        for key, value in excluded:
            self._excluded.remove(key, value, slot)

    def satisfied(self, labels: Mapping[str, str], size: int) -> BoolColumn:
        met = np.zeros(size, np.int32)
        for slots in self._required.arrays(labels):
            met[slots] += 1
        found: BoolColumn = met == self.needed[:size]
        for slots in self._excluded.arrays(labels):
            found[slots] = False
        return found


def _sides(wanted: Iterable[Requirement]) -> tuple[dict[str, set[str | None]], set[tuple[str, str | None]]]:
    """Returns by key the values of which an object needs one (None: any), and the labels it must not have."""
    required: dict[str, set[str | None]] = {}
    excluded: set[tuple[str, str | None]] = set()
    for each in wanted:
        if each.op is Operator.IN:
            before = required.get(each.key, {None})
            required[each.key] = {*each.values} if None in before else before & {*each.values}
        elif each.op is Operator.EXISTS:
            required.setdefault(each.key, {None})
        elif each.op is Operator.NOT_IN:
            excluded.update((each.key, value) for value in each.values)
        else:
            excluded.add((each.key, None))
    return required, excluded


class CarriedTerms:
    """All terms that pods on nodes carry. Only `PodColumns` writes here.

    `namespaces` holds the labels of the known namespaces and `labels` those of nodes. `mark` grows with every change,
    and `compared` by the terms and carriers that `count` goes through.
    """

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]], labels: LabelColumns) -> None:
        self.namespaces = namespaces
        self.labels = labels
        self.mark = self.compared = 0
        self._oldest = 0
        self._log: deque[Step] = deque(maxlen=MAX_LOGGED)
        self._pods, self._namespaces = _Condition(), _Condition()
        self._listed = _Slots()  # by name of a namespace
        self._topologies = _Topologies(labels)
        self._group = np.zeros(_FIRST, np.int32)
        self._weight = np.zeros(_FIRST, np.int64)
        self._slots, self._free = 0, list[int]()
        # Carriers: a slot, a row and how many. A carrier that leaves is a further entry, until `_compact`.
        self._at_slot, self._at_row, self._at_pods = (np.zeros(_FIRST, np.int64) for _ in range(3))
        self._size = 0

    # --- changes ----------------------------------------------------------------------------------------------------

    def add(self, carried: AffinityTerm) -> int:
        """Adds a term. Returns its slot."""
        slot = self._free.pop() if self._free else self._open()
        what, weight = effect(carried)
        self._group[slot] = self._topologies.use(carried.topology) * len(Effect) + what
        self._weight[slot] = weight
        term = carried.term
        if not term.selector.nothing:
            self._pods.set(slot, term.selector.requirements)
        if not term.namespace_selector.nothing:
            self._namespaces.set(slot, term.namespace_selector.requirements)
        for namespace in term.namespaces:
            self._listed.add(namespace, None, slot)
        return slot

    def remove(self, carried: AffinityTerm, slot: int) -> None:
        """Removes a term that no pod carries any more."""
        term = carried.term
        self._topologies.drop(carried.topology)
        if not term.selector.nothing:
            self._pods.clear(slot, term.selector.requirements)
        if not term.namespace_selector.nothing:
            self._namespaces.clear(slot, term.namespace_selector.requirements)
        for namespace in term.namespaces:
            self._listed.remove(namespace, None, slot)
        self._free.append(slot)

    def move(self, carried: AffinityTerm, slot: int, row: int, delta: int) -> None:
        """Adds a carrier to a row (+1) or removes one (-1)."""
        if self._size == len(self._at_slot):
            self._compact()
        at = self._size
        self._at_slot[at], self._at_row[at], self._at_pods[at] = slot, row, delta
        self._size += 1
        self.mark += 1
        self._log.append((carried, row, delta))

    def namespace_changed(self) -> None:
        self.mark += 1
        self._log.append((None, 0, 0))

    def nodes_relabelled(self) -> None:
        """Handles a node that comes, goes or has other labels: rows may be in other domains."""
        self.mark += 1
        self._oldest = self.mark
        self._log.clear()
        self._topologies.refresh()

    def _open(self) -> int:
        if self._slots == len(self._group):
            capacity = 2 * self._slots
            self._group, self._weight = grow(self._group, capacity), grow(self._weight, capacity)
            for each in (self._pods, self._namespaces):
                each.needed = grow(each.needed, capacity, _NEVER)
        self._slots += 1
        return self._slots - 1

    def _compact(self) -> None:
        """Sums up the entries of each slot and row. Doubles the capacity if most of them are needed."""
        slots, rows, pods = self._carriers()
        width = int(rows.max(initial=0)) + 1
        places, which = np.unique(slots * width + rows, return_inverse=True)
        sums = np.bincount(which, weights=pods, minlength=len(places)).astype(np.int64)
        places, sums = places[sums != 0], sums[sums != 0]
        self._size = len(places)
        capacity = max(_FIRST, 2 * self._size)
        self._at_slot, self._at_row = grow(places // width, capacity), grow(places % width, capacity)
        self._at_pods = grow(sums, capacity)

    def _carriers(self) -> tuple[IntColumn, IntColumn, IntColumn]:
        size = self._size
        return self._at_slot[:size], self._at_row[:size], self._at_pods[:size]

    # --- reading ----------------------------------------------------------------------------------------------------

    def since(self, mark: int) -> list[Step] | None:
        """Returns the changes since `mark`, or None if the log does not reach that far back."""
        missed = self.mark - mark
        return None if mark < self._oldest or missed > len(self._log) else [self._log[i] for i in range(-missed, 0)]

    def selects(self, carried: AffinityTerm, namespace: str, labels: Mapping[str, str]) -> bool:
        """Returns whether a term selects such a pod. An unknown namespace has no labels, as upstream."""
        term = carried.term
        return term.covers(namespace, self.namespaces.get(namespace, {})) and term.selector.matches(labels)

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> BoolColumn:
        """Returns by slot whether the term selects such a pod."""
        covered = self._namespaces.satisfied(self.namespaces.get(namespace, {}), self._slots)
        for slots in self._listed.arrays({namespace: ""}):
            covered[slots] = True
        covered &= self._pods.satisfied(labels, self._slots)
        return covered

    def count(self, namespace: str, labels: Mapping[str, str]) -> dict[Group, IntColumn]:
        """Returns how often the terms that select such a pod count on each row. Topology labels that no node has are
        left out."""
        self.compared += self._slots + self._size
        slots, rows, pods = self._carriers()
        asked = self.selecting(namespace, labels) & self._topologies.known(self._group[: self._slots] // len(Effect))
        of_asked = asked[slots]
        slots, rows, pods = slots[of_asked], rows[of_asked], pods[of_asked]
        groups, counts = self._group[slots], pods * self._weight[slots]
        found: dict[Group, IntColumn] = {}
        for group, where in _by_group(groups):
            topology, what = divmod(group, len(Effect))
            sums = np.bincount(rows[where], weights=counts[where]).astype(np.int64)
            if sums.any():
                found[self._topologies.name(topology), Effect(what)] = sums
        return found


def _by_group(groups: Any) -> list[tuple[int, Any]]:
    """Returns each group with where it is."""
    distinct = np.unique(groups)
    if len(distinct) <= _MANY_GROUPS:
        return [(int(each), groups == each) for each in distinct]
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], distinct)
    return list(zip(distinct.tolist(), np.split(order, starts[1:]), strict=True))


class _Topologies:
    """Codes of the topology labels that terms name, and which of them some node has."""

    def __init__(self, labels: LabelColumns) -> None:
        self._labels = labels
        self._codes: dict[str, int] = {}
        self._names: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []
        self._known: NDArray[np.bool_] | None = None

    def use(self, topology: str) -> int:
        code = self._codes.get(topology)
        if code is None:
            if self._free:
                code = self._free.pop()
            else:
                code = len(self._names)
                self._names.append("")
                self._uses.append(0)
            self._codes[topology], self._names[code] = code, topology
            self._known = None
        self._uses[code] += 1
        return code

    def drop(self, topology: str) -> None:
        code = self._codes[topology]
        self._uses[code] -= 1
        if not self._uses[code]:
            del self._codes[topology]
            self._names[code] = ""
            self._free.append(code)

    def name(self, code: int) -> str:
        return self._names[code]

    def refresh(self) -> None:
        self._known = None

    def known(self, codes: Any) -> BoolColumn:
        """Returns where the code is that of a label which some node has."""
        if self._known is None:
            self._known = np.zeros(len(self._names) + 1, np.bool_)
            for key in self._labels.keys:  # a tenant may name any number of topologies, and nodes have few labels
                if key in self._codes:
                    self._known[self._codes[key]] = True
        found: BoolColumn = self._known[codes]
        return found
