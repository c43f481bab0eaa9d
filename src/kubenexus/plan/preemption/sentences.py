"""What people read about preemption. The sentences name no pods: victims may be of other tenants."""

from typing import Any, Final

import numpy as np

from kubenexus.framework.decision import MAX_NAMED, Shortage, VictimCost
from kubenexus.plan.preemption.free_amounts import FreeAmounts
from kubenexus.plan.preemption.member_counts import MemberCounts

NEVER: Final = "preemption: not tried, since preemptionPolicy is Never."
WAITS: Final = "preemption: waits until the pods are gone that make room."
_USELESS: Final = "preemption: would not help"


def have_to_go(cost: VictimCost) -> str:
    """Returns `preemption: 3 pods of 2 jobs have to go first.`"""
    have = "has" if cost.pods == 1 else "have"
    jobs = f" of {_number(cost.jobs, 'job')}" if cost.pods > 1 else ""
    return f"preemption: {_number(cost.pods, 'pod')}{jobs} {have} to go first."


def have_to_move(cost: VictimCost) -> str:
    """Returns `consolidation: 3 pods have to move to other nodes first.`"""
    have, nodes = ("has", "another node") if cost.pods == 1 else ("have", "other nodes")
    return f"consolidation: {_number(cost.pods, 'pod')} {have} to move to {nodes} first."


def would_not_help(free: FreeAmounts, need: Any, potential: Any, *, cut: bool) -> str:
    """Returns what is missing on the node that comes closest once all possible victims are gone."""
    if cut:
        return f"{_USELESS} on the nodes that were tried (not everything was tried)."
    if not potential.any():
        return f"{_USELESS}: no node refuses the pod for a reason that evictions remove."
    rows = np.flatnonzero(potential)
    lacking = np.maximum(need - free.with_victims()[:, rows], 0.0)
    short = (lacking / np.maximum(need, 1.0)).max(axis=0)
    closest = lacking[:, int(short.argmin())]
    if not closest.any():
        return (
            f"{_USELESS}: without all pods that may be evicted, nodes refuse the pod for other reasons than resources."
        )
    wanted = [Shortage(name, int(amount)) for name, amount in zip(free.names, closest, strict=True) if amount > 0]
    return f"{_USELESS}: without all pods that may be evicted, the closest node still lacks {listed(wanted)}."


def gang_would_not_fit(counts: MemberCounts, *, cut: bool) -> str:
    """Returns how many members would fit if all possible victims were gone."""
    if cut:
        return f"{_USELESS} in what was tried (not everything was tried)."
    most = int(counts.by_domain(counts.free.with_victims()).max(initial=0))
    if most < counts.minimum:
        where = f" in any one {counts.domains.level}" if counts.domains.level else ""
        fit = f"at most {most} of at least {counts.minimum} members fit{where}"
        return f"{_USELESS}: without all pods that may be evicted, {fit}."
    return f"{_USELESS}: without all pods that may be evicted, members do not fit for other reasons than resources."


def listed(shortages: list[Shortage]) -> str:
    """Returns `2 cpu, 4Gi memory`."""
    named = ", ".join(each.text() for each in shortages[:MAX_NAMED])
    more = len(shortages) - MAX_NAMED
    return named + (f" and {more} resources more" if more > 0 else "")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
