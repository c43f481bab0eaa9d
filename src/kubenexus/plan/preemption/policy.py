"""The settings of GangPreemption, as the planner uses them."""

import msgspec

from kubenexus.framework.preemption_defaults import MAX_VICTIMS, PROTECTED_NAMESPACES


class PreemptionPolicy(msgspec.Struct, frozen=True):
    """Which pods may be victims.

    hard_budgets            a PodDisruptionBudget is a limit; else it is the first thing that is compared
    tier_preemption         a tenant of a higher tier outranks pods of the same priority
    services_preempt_batch  services outrank batch work of the same priority
    reclaim                 jobs of a queue below its guarantee outrank pods of no more priority that borrow it
    protected_namespaces    their pods are never victims
    max_victims             of one decision
    max_moves               pods that move to other nodes for one job, so that it fits; 0: none
    moves                   victims are pods that move, and each has to fit elsewhere
    """

    hard_budgets: bool = True
    tier_preemption: bool = False
    services_preempt_batch: bool = False
    reclaim: bool = False
    protected_namespaces: frozenset[str] = frozenset(PROTECTED_NAMESPACES)
    max_victims: int = MAX_VICTIMS
    max_moves: int = 0
    moves: bool = False

    @property
    def of_moves(self) -> "PreemptionPolicy":
        """The policy by which pods are chosen that move. Budgets are a limit in any case."""
        return msgspec.structs.replace(self, hard_budgets=True, max_victims=self.max_moves, moves=True)
