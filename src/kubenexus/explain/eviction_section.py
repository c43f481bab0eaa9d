"""Which pods would have to go for a job, in words. Pods of other namespaces are counted, not named."""

from typing import Final

import msgspec

from kubenexus.framework.decision import Decision, VictimCost
from kubenexus.state.tenants import RANKS

MAX_NAMED: Final = 20
_TIERS: Final = {rank: tier for tier, rank in RANKS.items()}


class Evictions(msgspec.Struct, frozen=True, gc=False):
    """The pods that would have to go: those of the job's own namespace by name, the number of others, and the cost.
    `nodes` is where members go then. `alternatives` are costs of other pods that would do as well."""

    own: tuple[str, ...]
    others: int
    cost: VictimCost | None
    nodes: tuple[str, ...]
    alternatives: tuple[VictimCost, ...] = ()


def evictions(decision: Decision, namespace: str) -> Evictions | None:
    """Returns the evictions of a decision, for readers of a namespace; None if nothing has to go."""
    found = decision.preemption
    if found is None:
        return None
    own = tuple(each.pod for each in found.victims if each.pod.partition("/")[0] == namespace)
    nodes = tuple(dict.fromkeys(each.node for each in found.nominations))
    return Evictions(own, len(found.victims) - len(own), found.cost, nodes, found.alternatives)


def without_other_names(decision: Decision, namespace: str) -> Decision:
    """Returns the decision without victims of other namespaces."""
    found = decision.preemption
    if found is None:
        return decision
    own = tuple(each for each in found.victims if each.pod.partition("/")[0] == namespace)
    return msgspec.structs.replace(decision, preemption=msgspec.structs.replace(found, victims=own))


def render_evictions(found: Evictions | None) -> list[str]:
    """Returns the lines about evictions."""
    if found is None:
        return []
    more = len(found.own) - MAX_NAMED
    parts = [*found.own[:MAX_NAMED], *([f"{more} more of this namespace"] if more > 0 else [])]
    if found.others:
        parts.append(f"{found.others} of other namespaces")
    lines = [f"EVICT    {', '.join(parts)}"]
    if found.cost is not None:
        lines.append(f"COST     {cost_text(found.cost)}")
    lines += [f"OR       {cost_text(each)}" for each in found.alternatives]
    nodes = list(found.nodes[:MAX_NAMED])
    nodes += [f"{len(found.nodes) - MAX_NAMED} more"] if len(found.nodes) > MAX_NAMED else []
    return [*lines, f"THEN ON  {', '.join(nodes)}"]


def cost_text(cost: VictimCost) -> str:
    """Returns `priority 100, 2 jobs, tier bronze, 3600 s of work, 3 pods`."""
    parts = [
        f"{_count(cost.pdb_violations, 'violated budget')}" if cost.pdb_violations else "",
        f"priority {cost.priority}",
        _count(cost.jobs, "job"),
        f"tier {_TIERS[cost.tier]}",
        f"{cost.work:.0f} s of work" if cost.work else "",
        _count(cost.pods, "pod"),
    ]
    return ", ".join(part for part in parts if part)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
