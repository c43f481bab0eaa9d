"""What the pods that a report counts hold, each of them if that can be known.

    as predicted when they were placed           the report agrees with the sums
    admitted again, after pods that are known    they reached the kubelet in another order
    admitted again on the empty machine          nothing is known of any of them: after a restart
    not known                                    a search finds NUMA nodes that explain the sums

What an earlier report has confirmed stays known in all cases but the third.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kubenexus.api.numa.hidden import explain
from kubenexus.api.numa.machine import Usage
from kubenexus.api.numa.pod_demand import PodDemand
from kubenexus.api.numa.reported_node import ReportedNode
from kubenexus.state.numa.holdings import Holding, difference, left_to_explain, usage_of, with_taken

Pods = Mapping[str, PodDemand]  # by name, in the order of their admission


class Explanation(msgspec.Struct, frozen=True):
    """The usage by a report, and what each pod holds of which that is known."""

    usage: Usage
    held: dict[str, Holding] = {}


def explanation(
    reported: ReportedNode, pods: Pods, predicted: Mapping[str, Holding], confirmed: Mapping[str, Holding]
) -> Explanation:
    """Returns what pods hold that a report counts. `predicted` is what pods were expected to hold, `confirmed` the part
    of it that the report before has confirmed, also of pods that are gone since."""
    if not pods:
        return Explanation(reported.visible)
    whole = {name: predicted[name] for name in pods if name in predicted}
    if len(whole) == len(pods) and _is_all(reported, whole.values()):
        return Explanation(usage_of(reported.machine, whole.values()), whole)
    held = {name: confirmed[name] for name in pods if name in confirmed}
    gone = [each for name, each in confirmed.items() if name not in pods]
    rest = {name: demand for name, demand in pods.items() if name not in held}
    best: Explanation | None = None
    for earlier in (list[Holding](), gone) if gone else (list[Holding](),):
        found = _after(reported, held, earlier, rest)
        if found is not None and len(found.held) == len(pods):
            return found
        best = best or found
    if held:
        afresh = _after(reported, {}, [], pods)
        if afresh is not None and len(afresh.held) == len(pods):
            return afresh
        best = best or afresh
    return best or Explanation(reported.visible)


def _is_all(reported: ReportedNode, holdings: Iterable[Holding]) -> bool:
    left = left_to_explain(reported.machine, reported.visible, holdings)
    return left is not None and not any(amount for amounts in left.values() for amount in amounts)


def _after(
    reported: ReportedNode, held: Mapping[str, Holding], gone: Sequence[Holding], rest: Pods
) -> Explanation | None:
    """Explains the rest, given what some pods hold; None if the report excludes that. `gone` are pods that were still
    there when the rest was admitted."""
    machine = reported.machine
    left = left_to_explain(machine, reported.visible, held.values())
    if left is None:
        return None
    start = usage_of(machine, [*held.values(), *gone])
    visible = with_taken(machine, usage_of(machine, held.values()), left, reported.visible)
    found = explain(reported.kubelet, machine, start, visible, left, list(rest.values()))
    if found.steps is None:
        return None if gone else Explanation(found.usage, dict(held))
    names = list(rest)
    fresh = {names[step.pod]: difference(step.before, step.after, step.listed) for step in found.steps}
    both = {**held, **fresh}
    return Explanation(usage_of(machine, both.values()), both)
