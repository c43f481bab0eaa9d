"""The settings of preemption of a profile."""

from kubenexus.config.args import DefaultPreemptionArgs, GangPreemptionArgs
from kubenexus.config.catalogue import GANG_PREEMPTION, PREEMPTION
from kubenexus.config.load import Configuration
from kubenexus.framework.profile import DEFAULT_SCHEDULER


def preemption_settings(configuration: Configuration, profile: str) -> DefaultPreemptionArgs | None:
    """Returns the arguments of DefaultPreemption, or None if the profile does not preempt as kube-scheduler does. Only
    a profile with kube-scheduler's name does, unless the configuration disables the plugin."""
    args = configuration.args[profile].get(PREEMPTION)
    if profile != DEFAULT_SCHEDULER or args is None or not _is_enabled(configuration, profile, PREEMPTION):
        return None
    return DefaultPreemptionArgs(
        min_candidate_nodes_percentage=args["minCandidateNodesPercentage"],
        min_candidate_nodes_absolute=args["minCandidateNodesAbsolute"],
    )


def gang_preemption_settings(configuration: Configuration, profile: str) -> GangPreemptionArgs | None:
    """Returns the arguments of GangPreemption, or None if the profile does not have it. Every profile has it, unless
    the configuration disables it; one with kube-scheduler's name has it only if the configuration enables it."""
    args = configuration.args[profile].get(GANG_PREEMPTION)
    if args is None or not _is_enabled(configuration, profile, GANG_PREEMPTION):
        return None
    return GangPreemptionArgs(
        pdb_policy=args["pdbPolicy"],
        tier_preemption=args["tierPreemption"],
        services_preempt_batch=args["servicesPreemptBatch"],
        reclaim=args["reclaim"],
        protected_namespaces=args["protectedNamespaces"],
        cooldown_seconds=args["cooldownSeconds"],
        fence_seconds=args["fenceSeconds"],
        max_victims=args["maxVictims"],
        consolidation=args["consolidation"],
        max_moved_pods=args["maxMovedPods"],
    )


def _is_enabled(configuration: Configuration, profile: str, plugin: str) -> bool:
    """Whether a plugin is on at postFilter."""
    given = next((each for each in configuration.document.profiles if each.scheduler_name == profile), None)
    if given is None:
        return False
    here, everywhere = given.plugins.post_filter, given.plugins.multi_point
    if any(each.name == plugin for each in here.enabled):
        return True
    if any(each.name in (plugin, "*") for each in here.disabled):
        return False
    return any(each.name == plugin for each in everywhere.enabled)
