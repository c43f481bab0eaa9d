"""PodDisruptionBudgets, as preemption reads them: which pods they select, and how many of these may go."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from kubenexus.api.selectors import NOTHING, Selector, compile_selector
from kubenexus.api.workloads import PodDisruptionBudget
from kubenexus.base.arrays import IntColumn, grow
from kubenexus.base.errors import Malformed
from kubenexus.state.pods import CONTROLLER, PodRecord

NO_BUDGET: Final = -1  # no budget selects the pod
SEVERAL_BUDGETS: Final = -2  # more than one does: the Eviction API refuses such pods
MAX_BUDGETS: Final = 64  # of a namespace, that pods are compared with; beyond that its pods count as having several


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


class DisruptionBudgets:
    """The budgets of the cluster by namespace. Only the ledger writes here."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, DisruptionBudget]] = {}
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
        known = self._by_namespace.setdefault(meta.namespace, {})
        before = known.get(meta.name)
        code = self._open() if before is None else before.code
        self.allowed[code] = max(status.disruptions_allowed, 0)
        self.relaxed += before is not None and before.allowed < status.disruptions_allowed
        disrupted = frozenset(status.disrupted_pods)
        known[meta.name] = DisruptionBudget(selector, status.disruptions_allowed, disrupted, code)
        return before is None or before.selector != selector

    def remove(self, key: str) -> bool:
        """Removes a budget by `namespace/name`. Returns whether there was one."""
        namespace, _, name = key.partition("/")
        known = self._by_namespace.get(namespace, {})
        before = known.pop(name, None)
        if before is None:
            return False
        self._free.append(before.code)
        self.relaxed += 1
        if not known:
            del self._by_namespace[namespace]
        return True

    def code_of(self, pod: PodRecord) -> int:
        """Returns the code of the budget that selects a pod, or NO_BUDGET or SEVERAL_BUDGETS."""
        known = self._by_namespace.get(pod.namespace)
        if known is None or not pod.labels:
            return NO_BUDGET
        if len(known) > MAX_BUDGETS:
            return SEVERAL_BUDGETS
        found = NO_BUDGET
        for budget in known.values():
            if budget.selector.matches(pod.labels):
                if found != NO_BUDGET:
                    return SEVERAL_BUDGETS
                found = budget.code
        return found

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
        return sorted(known.items(), key=lambda item: item[0]) if known else []

    def split(self, pods: Sequence[PodRecord]) -> tuple[list[PodRecord], list[PodRecord]]:
        """Splits pods into those whose eviction would violate a budget, and the others, if they are evicted in this
        order. A pod without labels violates none. A pod that violates a budget does not count in later budgets."""
        if not self._by_namespace:
            return [], list(pods)
        left: dict[tuple[str, str], int] = {}
        violating: list[PodRecord] = []
        others: list[PodRecord] = []
        budgets = {namespace: self.of(namespace) for namespace in {pod.namespace for pod in pods}}
        for pod in pods:
            (violating if _violates(pod, budgets[pod.namespace], left) else others).append(pod)
        return violating, others


def _violates(pod: PodRecord, budgets: list[tuple[str, DisruptionBudget]], left: dict[tuple[str, str], int]) -> bool:
    if not pod.labels or pod.labels.keys() == {CONTROLLER}:
        return False
    for name, budget in budgets:
        if not budget.counts(pod):
            continue
        key = (pod.namespace, name)
        left[key] = left.get(key, budget.allowed) - 1
        if left[key] < 0:
            return True
    return False


def _selector(budget: PodDisruptionBudget) -> Selector:
    if budget.spec.selector is None:
        return NOTHING
    try:
        return compile_selector(budget.spec.selector)
    except Malformed:
        return NOTHING
