"""The settings of preemption that a configuration asks for, as the planner and the executor use them."""

from kubenexus.app.preemption.preemption_rules import UPSTREAM_RULES, ProfileRules
from kubenexus.config.args import DefaultPreemptionArgs, GangPreemptionArgs
from kubenexus.plan.preemption.default_preemption import CandidateLimits
from kubenexus.plan.preemption.policy import PreemptionPolicy


def preemption_policy(args: GangPreemptionArgs | None) -> PreemptionPolicy | None:
    """Returns the policy of GangPreemption; None without it."""
    if args is None:
        return None
    return PreemptionPolicy(
        hard_budgets=args.pdb_policy == "hard",
        tier_preemption=args.tier_preemption,
        services_preempt_batch=args.services_preempt_batch,
        reclaim=args.reclaim,
        protected_namespaces=frozenset(args.protected_namespaces),
        max_victims=args.max_victims,
        max_moves=args.max_moved_pods if args.consolidation else 0,
    )


def profile_rules(args: GangPreemptionArgs | None) -> ProfileRules:
    """Returns how preemptions are executed; without GangPreemption as kube-scheduler does."""
    if args is None:
        return UPSTREAM_RULES
    return ProfileRules(fence=float(args.fence_seconds), cooldown=float(args.cooldown_seconds))


def candidate_limits(args: DefaultPreemptionArgs | None) -> CandidateLimits | None:
    """Returns the limits of DefaultPreemption; None without it."""
    if args is None:
        return None
    return CandidateLimits(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)
