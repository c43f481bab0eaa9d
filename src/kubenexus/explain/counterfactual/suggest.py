"""Collects what would make a refused job start at once, the cheapest first."""

from collections.abc import Callable

import msgspec

from kubenexus.explain.counterfactual.job_changes import (
    dropped_constraints,
    higher_priority,
    relaxed_topology,
    smaller_minimum,
    tolerated_taints,
)
from kubenexus.explain.counterfactual.node_changes import more_capacity, new_nodes, usable_nodes
from kubenexus.explain.counterfactual.trials import Found, OutOfTrials, Suggestion, Trials
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job


class Counterfactuals(msgspec.Struct, frozen=True, gc=False):
    """`suggestions`: with each of them alone the job starts at once. `decisions` is how many were made to find them.
    `complete`: each kind of suggestion was tried to its end."""

    suggestions: tuple[Suggestion, ...] = ()
    decisions: int = 0
    complete: bool = True


def find_suggestions(
    job: Job, decision: Decision, trials: Trials, visible: Callable[[str], bool] = lambda namespace: True
) -> list[Found]:
    """Returns what would make the job start that `decision` refuses.

    The order is that of the cost: nodes that are there but not used, then what the job itself gives up, then other
    jobs that have to go (if they do not have to already), then hardware. `visible` says whether jobs of a
    namespace may be named. Makes at most
    `MAX_DECISIONS` decisions.
    """
    kinds: tuple[Callable[[], list[Found]], ...] = (
        lambda: usable_nodes(job, trials),
        lambda: relaxed_topology(job, trials),
        lambda: dropped_constraints(job, trials),
        lambda: tolerated_taints(job, trials),
        lambda: smaller_minimum(job, trials),
        lambda: [] if decision.preemption is not None else higher_priority(job, trials, visible),
        lambda: more_capacity(job, trials, decision),
        lambda: new_nodes(job, trials, decision),
    )
    found: list[Found] = []
    for find in kinds:
        trials.begin_kind()
        try:
            found += find()
        except OutOfTrials:
            continue
    return found


def counterfactuals(
    job: Job, decision: Decision, trials: Trials, visible: Callable[[str], bool] = lambda namespace: True
) -> Counterfactuals:
    """Returns the suggestions as data."""
    found = find_suggestions(job, decision, trials, visible)
    return Counterfactuals(tuple(each.suggestion for each in found), trials.made, not trials.exhausted)


def render_counterfactuals(found: Counterfactuals | None) -> list[str]:
    """Returns the lines about what would help."""
    if found is None:
        return []
    ending = "" if found.complete else " (not everything was tried)"
    if not found.suggestions:
        return [f"STARTS AT ONCE IF  no single change was found that would do{ending}"]
    least = [f"{each.text}" + ("" if each.minimal else " (less may do)") for each in found.suggestions]
    lines = [f"STARTS AT ONCE IF  {text}" for text in least]
    return lines + ([f"STARTS AT ONCE IF  maybe something else helps, too{ending}"] if ending else [])
