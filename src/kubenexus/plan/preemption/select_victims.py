"""The dry run on one node: the fewest and least important pods that have to go."""

from typing import Final

from kubenexus.framework.verdict import Code, Verdict
from kubenexus.plan.preemption.candidate import Candidate, importance
from kubenexus.plan.preemption.node_trial import NodeTrial
from kubenexus.state.disruption_budgets import DisruptionBudgets
from kubenexus.state.pods import PodRecord

NO_VICTIMS: Final = Verdict(Code.UNRESOLVABLE, ("No preemption victims found for incoming pod",))


def select_victims_on_node(
    trial: NodeTrial, node: str, potential: list[PodRecord], budgets: DisruptionBudgets
) -> Candidate | Verdict:
    """Returns the node with its victims, or why it is no candidate.

    `potential` are the pods on the node that may be victims, in order of arrival. All are removed first. If the pod
    fits then, they are put back one by one while it still fits: first those whose eviction would violate a budget, then
    the others, and of each the most important first. Those that cannot be put back are the victims.
    """
    if not potential:
        return NO_VICTIMS
    for pod in potential:
        trial.remove(pod)
    refusal = trial.refusal()
    if refusal is not None:
        return refusal
    ordered = sorted(potential, key=importance)
    violating, others = budgets.split(ordered)
    victims = [pod for pod in violating if not _reprieved(pod, trial)]
    violations = len(victims)
    victims += [pod for pod in others if not _reprieved(pod, trial)]
    if not victims:
        return Verdict(Code.ERROR, (f'expected at least one victim pod on node "{node}"',))
    return Candidate(node, tuple(sorted(victims, key=importance)), violations)


def _reprieved(pod: PodRecord, trial: NodeTrial) -> bool:
    """Puts a pod back, and removes it again if the preemptor does not fit beside it."""
    trial.restore(pod)
    if trial.still_fits():
        return True
    trial.remove(pod)
    return False
