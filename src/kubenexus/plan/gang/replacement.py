"""What a gang may take although room is kept for another one: the room that its own lost members left, and no more.

The ledger holds that room for the gang for a while (`app.gangs.replacement_holds`), on the nodes where the members
were. A replacement that goes there takes nothing that the other gang could count on. To have members on nodes is no
reason to pass by itself: a pod of one millicore that names its node would let any number of others pass.
"""

from collections.abc import Mapping, Sequence

from kubenexus.framework.decision import PodPlacement
from kubenexus.framework.job import Job
from kubenexus.state.snapshot import Snapshot

Amounts = dict[str, int]


def held_for(job: Job, snapshot: Snapshot) -> Mapping[str, Amounts]:
    """How much of each resource is held for the job, by node; `pods` is one for each lost member."""
    held: dict[str, Amounts] = {}
    nominees = snapshot.nominees() if job.hold_keys else {}
    for node, records in nominees.items():
        for record in records if node in snapshot.nodes.row_of else ():
            if record.key in job.hold_keys:
                amounts = held.setdefault(node, {})
                for name, amount in (*record.footprint.amounts, ("pods", 1)):
                    amounts[name] = amounts.get(name, 0) + amount
    return held


def replacements(placements: Sequence[PodPlacement], held: Mapping[str, Amounts]) -> set[str]:
    """The UIDs of those that take no more than what is held, all of them together."""
    left = {node: dict(amounts) for node, amounts in held.items()}
    found = set()
    for each in placements if left else ():
        capacity, wanted = left.get(each.node, {}), (*each.footprint.amounts, ("pods", 1))
        if all(capacity.get(name, 0) >= amount for name, amount in wanted):
            for name, amount in wanted:
                capacity[name] = capacity.get(name, 0) - amount
            found.add(each.uid)
    return found
