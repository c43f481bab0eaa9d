"""PodDisruptionBudgets, as preemption reads them: which pods they select, and how many of these may go."""

from collections.abc import Sequence

import msgspec

from kubenexus.api.selectors import NOTHING, Selector, compile_selector
from kubenexus.api.workloads import PodDisruptionBudget
from kubenexus.base.errors import Malformed
from kubenexus.state.pods import CONTROLLER, PodRecord


class DisruptionBudget(msgspec.Struct, frozen=True):
    """A budget. `disrupted` are the names of pods that the API server has counted already."""

    selector: Selector
    allowed: int
    disrupted: frozenset[str] = frozenset()

    def counts(self, pod: PodRecord) -> bool:
        """Returns whether the eviction of a pod of the budget's namespace takes one of the allowed disruptions."""
        return pod.name not in self.disrupted and self.selector.matches(pod.labels)


class DisruptionBudgets:
    """The budgets of the cluster by namespace. Only the ledger writes here."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, DisruptionBudget]] = {}

    def set(self, budget: PodDisruptionBudget) -> None:
        """Adds or updates a budget. One that selects nothing is not kept: a missing, empty or malformed selector."""
        meta, selector = budget.metadata, _selector(budget)
        if selector.nothing or not selector.requirements:
            self.remove(f"{meta.namespace}/{meta.name}")
            return
        status = budget.status
        known = self._by_namespace.setdefault(meta.namespace, {})
        known[meta.name] = DisruptionBudget(selector, status.disruptions_allowed, frozenset(status.disrupted_pods))

    def remove(self, key: str) -> None:
        """Removes a budget by `namespace/name`."""
        namespace, _, name = key.partition("/")
        known = self._by_namespace.get(namespace, {})
        if known.pop(name, None) is not None and not known:
            del self._by_namespace[namespace]

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
