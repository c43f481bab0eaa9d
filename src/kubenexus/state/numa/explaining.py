"""Finds what each pod that a report counts holds on NUMA nodes, as far as that can be known.

    as predicted when they were placed           the report agrees with the sums
    admitted again, after pods that are known    they reached the kubelet in another order
    admitted again on the empty machine          nothing is known of any of them, as after a restart
    not known                                    a search finds NUMA nodes that explain the sums

What an earlier report has confirmed stays known in all cases but the third.
"""

from collections.abc import Iterable, Mapping

import msgspec

from kubenexus.api.numa.hidden import search_hidden
from kubenexus.api.numa.machine import Usage
from kubenexus.api.numa.pod_demand import PodDemand
from kubenexus.api.numa.replay import replay
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
    # The second with pods that were still there when the others came, the third for what was confirmed wrongly.
    for known, left_since in ((held, ()), *(((held, gone),) if gone else ()), *((({}, ()),) if held else ())):
        found = _replayed(reported, pods, known, left_since)
        if found is not None:
            return found
    return _searched(reported, pods, held) or _searched(reported, pods, {}) or Explanation(reported.visible)


def _is_all(reported: ReportedNode, holdings: Iterable[Holding]) -> bool:
    left = left_to_explain(reported.machine, reported.visible, holdings)
    return left is not None and not any(amount for amounts in left.values() for amount in amounts)


def _replayed(
    reported: ReportedNode, pods: Pods, held: Mapping[str, Holding], gone: Iterable[Holding]
) -> Explanation | None:
    """Admits the other pods again, after those of which it is known what they hold; None if that explains nothing."""
    machine = reported.machine
    left = left_to_explain(machine, reported.visible, held.values())
    if left is None:
        return None
    names = [name for name in pods if name not in held]
    start = usage_of(machine, [*held.values(), *gone])
    steps = replay(reported.kubelet, machine, start, left, [pods[name] for name in names])
    if steps is None:
        return None
    fresh = {names[step.pod]: difference(step.before, step.after, step.listed) for step in steps}
    both = {**held, **fresh}
    return Explanation(usage_of(machine, both.values()), both)


def _searched(reported: ReportedNode, pods: Pods, held: Mapping[str, Holding]) -> Explanation | None:
    """Searches NUMA nodes for the other pods; None if the report has less in use than what is known."""
    machine = reported.machine
    left = left_to_explain(machine, reported.visible, held.values())
    if left is None:
        return None
    start, rest = usage_of(machine, held.values()), [pods[name] for name in pods if name not in held]
    visible = with_taken(machine, start, left, reported.visible)
    return Explanation(search_hidden(reported.kubelet, machine, start, visible, left, rest), dict(held))
