"""The capacity that a gang may use in spite of another gang's reservation: that of its own lost members.

The ledger holds this capacity for a while on the nodes where the members were (`app.gangs.replacement_holds`). A
replacement that goes there takes nothing that the other gang could count on. Bound members alone are no reason to pass
a reservation: a pod of one millicore that names its node would let any number of others pass.
"""

from collections.abc import Mapping, Sequence

from kubenexus.framework.decision import PodPlacement
from kubenexus.framework.job import Job
from kubenexus.state.snapshot import Snapshot

Amounts = dict[str, int]


def held_for(job: Job, snapshot: Snapshot) -> Mapping[str, Amounts]:
    """Returns how much of each resource is held for the job, by node; `pods` counts the lost members."""
    held: dict[str, Amounts] = {}
    nominees = snapshot.nominees() if job.hold_keys else {}
    for node, records in nominees.items():
        for record in records.values() if node in snapshot.nodes.row_of else ():
            if record.key in job.hold_keys:
                amounts = held.setdefault(node, {})
                for name, amount in (*record.footprint.amounts, ("pods", 1)):
                    amounts[name] = amounts.get(name, 0) + amount
    return held


def replacements(placements: Sequence[PodPlacement], held: Mapping[str, Amounts]) -> set[str]:
    """Returns the UIDs of the placements that together take no more than what is held."""
    left = {node: dict(amounts) for node, amounts in held.items()}
    found = set()
    for each in placements if left else ():
        capacity, wanted = left.get(each.node, {}), (*each.footprint.amounts, ("pods", 1))
        if all(capacity.get(name, 0) >= amount for name, amount in wanted):
            for name, amount in wanted:
                capacity[name] = capacity.get(name, 0) - amount
            found.add(each.uid)
    return found
