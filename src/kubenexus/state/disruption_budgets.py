"""PodDisruptionBudgets, as preemption reads them: which pods they select, and how many of these may go.

Any user of a namespace can create thousands of budgets there, with long selectors. So budgets are filed by a label that
they require, a pod is compared with few of them, and what a namespace may cost is bounded.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from kubenexus.api.selectors import NOTHING, Operator, Requirement, Selector, compile_selector
from kubenexus.api.workloads import PodDisruptionBudget
from kubenexus.base.arrays import IntColumn, grow
from kubenexus.base.errors import Malformed
from kubenexus.state.pods import CONTROLLER, PodRecord

NO_BUDGET: Final = -1  # no budget selects the pod
SEVERAL_BUDGETS: Final = -2  # more than one does: the Eviction API refuses such pods
# Beyond these limits a pod counts as having several budgets.
MAX_REQUIREMENTS: Final = 128  # of the budgets that a pod is compared with
MAX_KEYS: Final = 256  # by which the budgets of a namespace are filed, of a pod that has as many labels
MAX_COMPARED: Final = 200_000  # requirements, for all pods of a namespace: 0.1 s
_KEYS_OF_ONE: Final = 8  # keys that are looked up in the time of one requirement
_MAX_VALUES: Final = 8  # of a requirement by which a budget is filed


class DisruptionBudget(msgspec.Struct, frozen=True):
    """A budget. `disrupted` are the names of pods that the API server has counted already; `code` is its index in
    `DisruptionBudgets.allowed`."""

    selector: Selector
    allowed: int
    disrupted: frozenset[str] = frozenset()
    code: int = NO_BUDGET

    def counts(self, pod: PodRecord) -> bool:
        """Returns whether the eviction of a pod of the budget's namespace takes one of the allowed disruptions."""
        return pod.name not in self.disrupted and self.selector.matches(pod.labels)


class _Filed:
    """Some budgets, and how many requirements they have together."""

    __slots__ = ("budgets", "weight")

    def __init__(self) -> None:
        self.budgets: dict[str, DisruptionBudget] = {}
        self.weight = 0

    def put(self, name: str, budget: DisruptionBudget) -> None:
        self.budgets[name] = budget
        self.weight += len(budget.selector.requirements)

    def take(self, name: str) -> None:
        self.weight -= len(self.budgets.pop(name).selector.requirements)


class NamespaceBudgets:
    """The budgets of one namespace, each filed by a label that it requires: by that of several which the fewest others
    require. `too_many`: together with its pods they are beyond `MAX_COMPARED`, so each pod counts as having several."""

    def __init__(self) -> None:
        self.by_name: dict[str, DisruptionBudget] = {}
        self.too_many = False
        self._filed: dict[str, dict[str, _Filed]] = {}  # by key and value
        self._others = _Filed()
        self._key_of: dict[str, str] = {}  # by name: the key that a budget is filed by

    def put(self, name: str, budget: DisruptionBudget) -> None:
        self.take(name)
        self.by_name[name] = budget
        some = [each for each in budget.selector.requirements[:MAX_REQUIREMENTS] if _is_place(each)]
        best = min(some, key=lambda each: sum(self._weight(each.key, value) for value in each.values), default=None)
        if best is None:
            self._others.put(name, budget)
            return
        self._key_of[name] = best.key
        for value in best.values:
            self._filed.setdefault(best.key, {}).setdefault(value, _Filed()).put(name, budget)

    def take(self, name: str) -> DisruptionBudget | None:
        """Removes a budget, and returns it."""
        budget = self.by_name.pop(name, None)
        if budget is None:
            return None
        key = self._key_of.pop(name, None)
        if key is None:
            self._others.take(name)
            return budget
        by_value = self._filed[key]
        for value in next(each.values for each in budget.selector.requirements if each.key == key and _is_place(each)):
            by_value[value].take(name)
            if not by_value[value].budgets:
                del by_value[value]
        if not by_value:
            del self._filed[key]
        return budget

    def selecting(self, labels: Mapping[str, str]) -> list[tuple[str, DisruptionBudget]] | None:
        """Returns the budgets that select a pod with their names, in order of these; None if too many might."""
        if self.too_many or min(len(self._filed), len(labels)) > MAX_KEYS:
            return None
        some = [self._others] if self._others.weight else []
        for key in self._filed if len(self._filed) < len(labels) else labels:
            by_value, value = self._filed.get(key), labels.get(key)
            if by_value is not None and value in by_value:
                some.append(by_value[value])
        if sum([each.weight for each in some]) > MAX_REQUIREMENTS:
            return None
        return sorted(
            [item for each in some for item in each.budgets.items() if item[1].selector.matches(labels)],
            key=lambda item: item[0],
        )

    def limit(self, pods: int) -> None:
        """Finds out whether these are too many for so many pods."""
        heaviest = sum(max(each.weight for each in by_value.values()) for by_value in self._filed.values())
        compared = min(self._others.weight + heaviest, MAX_REQUIREMENTS)
        self.too_many = pods * (compared + min(len(self._filed), MAX_KEYS) // _KEYS_OF_ONE) > MAX_COMPARED

    def _weight(self, key: str, value: str) -> int:
        found = self._filed.get(key, {}).get(value)
        return 0 if found is None else found.weight


def _is_place(requirement: Requirement) -> bool:
    """Whether a budget can be filed by this requirement."""
    return requirement.op is Operator.IN and len(requirement.values) <= _MAX_VALUES


class DisruptionBudgets:
    """The budgets of the cluster by namespace. Only the ledger writes here."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, NamespaceBudgets] = {}
        self.allowed: IntColumn = np.zeros(16, np.int64)  # disruptions by the budget's code
        self._free: list[int] = []
        self._codes = 0
        self.relaxed = 0  # how often a budget began to allow more, or was removed

    def set(self, budget: PodDisruptionBudget) -> bool:
        """Adds or updates a budget. One that selects nothing is not kept: a missing, empty or malformed selector.
        Returns whether it selects other pods than before."""
        meta, selector = budget.metadata, _selector(budget)
        if selector.nothing or not selector.requirements:
            return self.remove(f"{meta.namespace}/{meta.name}")
        status = budget.status
        known = self._by_namespace.setdefault(meta.namespace, NamespaceBudgets())
        before = known.by_name.get(meta.name)
        code = self._open() if before is None else before.code
        self.allowed[code] = max(status.disruptions_allowed, 0)
        self.relaxed += before is not None and before.allowed < status.disruptions_allowed
        disrupted = frozenset(status.disrupted_pods)
        known.put(meta.name, DisruptionBudget(selector, status.disruptions_allowed, disrupted, code))
        return before is None or before.selector != selector

    def remove(self, key: str) -> bool:
        """Removes a budget by `namespace/name`. Returns whether there was one."""
        namespace, _, name = key.partition("/")
        known = self._by_namespace.get(namespace)
        before = None if known is None else known.take(name)
        if known is None or before is None:
            return False
        self._free.append(before.code)
        self.relaxed += 1
        if not known.by_name:
            del self._by_namespace[namespace]
        return True

    def limit(self, namespace: str, pods: int) -> None:
        """Finds out whether a namespace has too many budgets for its pods. These then count as having several."""
        known = self._by_namespace.get(namespace)
        if known is not None:
            known.limit(pods)

    def code_of(self, pod: PodRecord) -> int:
        """Returns the code of the budget that selects a pod, or NO_BUDGET or SEVERAL_BUDGETS."""
        known = self._by_namespace.get(pod.namespace)
        if known is None or not pod.labels:
            return NO_BUDGET
        found = known.selecting(pod.labels)
        if found is None or len(found) > 1:
            return SEVERAL_BUDGETS
        return found[0][1].code if found else NO_BUDGET

    def protects(self, pod: PodRecord) -> bool:
        """Returns whether the eviction of a pod counts in some budget."""
        known = self._by_namespace.get(pod.namespace)
        found = () if known is None else known.selecting(pod.labels)
        return found is None or any(budget.counts(pod) for _, budget in found)

    def __len__(self) -> int:
        """The number of budgets."""
        return self._codes - len(self._free)

    def _open(self) -> int:
        if self._free:
            return self._free.pop()
        if self._codes == len(self.allowed):
            self.allowed = grow(self.allowed, 2 * self._codes)
        self._codes += 1
        return self._codes - 1

    def of(self, namespace: str) -> list[tuple[str, DisruptionBudget]]:
        """Returns the budgets of a namespace with their names, in order of these."""
        known = self._by_namespace.get(namespace)
        return sorted(known.by_name.items(), key=lambda item: item[0]) if known else []

    def split(self, pods: Sequence[PodRecord]) -> tuple[list[PodRecord], list[PodRecord]]:
        """Splits pods into those whose eviction would violate a budget, and the others, if they are evicted in this
        order. A pod without labels violates none. A pod that violates a budget does not count in later budgets."""
        if not self._by_namespace:
            return [], list(pods)
        left: dict[int, int] = {}  # by the budget's code
        violating: list[PodRecord] = []
        others: list[PodRecord] = []
        for pod in pods:
            (violating if self._violates(pod, left) else others).append(pod)
        return violating, others

    def _violates(self, pod: PodRecord, left: dict[int, int]) -> bool:
        known = self._by_namespace.get(pod.namespace)
        if known is None or not pod.labels or pod.labels.keys() == {CONTROLLER}:
            return False
        found = known.selecting(pod.labels)
        for _, budget in found or ():
            if pod.name in budget.disrupted:
                continue
            left[budget.code] = left.get(budget.code, budget.allowed) - 1
            if left[budget.code] < 0:
                return True
        return found is None


def _selector(budget: PodDisruptionBudget) -> Selector:
    if budget.spec.selector is None:
        return NOTHING
    try:
        return compile_selector(budget.spec.selector)
    except Malformed:
        return NOTHING
