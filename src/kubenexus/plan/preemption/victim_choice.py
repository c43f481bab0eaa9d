"""Whether some pods may go together, and what that costs."""

from collections.abc import Iterable

import msgspec

from kubenexus.framework.decision import VictimCost
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plan.preemption.victim_pool import VictimPool
from kubenexus.state.disruption_budgets import DisruptionBudgets


class ChosenVictims(msgspec.Struct, frozen=True, gc=False):
    """Victims by their indices in the pool, and their cost."""

    pods: frozenset[int]
    cost: VictimCost


class VictimRules:
    """The rules for sets of victims of one job: what goes together, budgets, guarantees, and how many. `moves`: they
    have to fit on other nodes."""

    def __init__(self, pool: VictimPool, budgets: DisruptionBudgets, policy: PreemptionPolicy) -> None:
        self.pool, self.most, self.moves = pool, policy.max_victims, policy.moves
        self._allowed, self._policy = budgets.allowed, policy

    def choose(self, indices: Iterable[int]) -> ChosenVictims | None:
        """Returns these pods with all that have to go with them, or None if they may not all go."""
        pods = self.pool.closed(indices)
        if not pods or len(pods) > self.most or not self.pool.keeps_guarantees(pods):
            return None
        violations = self.pool.violations(pods, self._allowed)
        if violations and self._policy.hard_budgets:
            return None
        return ChosenVictims(pods, self.pool.cost(pods, violations))
