"""The settings of preemption of a profile."""

from kubenexus.config.args import DefaultPreemptionArgs
from kubenexus.config.catalogue import DEFAULT_SCHEDULER, PREEMPTION
from kubenexus.config.load import Configuration


def preemption_settings(configuration: Configuration, profile: str) -> DefaultPreemptionArgs | None:
    """Returns the arguments of DefaultPreemption, or None if the profile does not preempt. Only a profile with
    kube-scheduler's name does, unless the configuration disables the plugin."""
    args = configuration.args[profile].get(PREEMPTION)
    given = next((each for each in configuration.document.profiles if each.scheduler_name == profile), None)
    off = {each.name for each in given.plugins.post_filter.disabled} if given is not None else set()
    off |= {each.name for each in given.plugins.multi_point.disabled} if given is not None else set()
    if profile != DEFAULT_SCHEDULER or args is None or off & {PREEMPTION, "*"}:
        return None
    return DefaultPreemptionArgs(
        min_candidate_nodes_percentage=args["minCandidateNodesPercentage"],
        min_candidate_nodes_absolute=args["minCandidateNodesAbsolute"],
    )
