"""How many members of a gang each row takes, by NUMA node.

Where all resources of a pod come from one NUMA node, the members of each NUMA node add up. Where a kubelet aligns
nothing, totals limit them, and static memory by NUMA node. In other cases a row takes one at a time: pods with several
containers that want something, and pods that need several NUMA nodes.
"""

from typing import Any, Final

import numpy as np

from kubenexus.api.numa.machine import BEST_EFFORT, NONE
from kubenexus.api.numa.pod_demand import ContainerDemand
from kubenexus.plugins.numa import own_policy
from kubenexus.plugins.numa.class_rules import ClassRules
from kubenexus.plugins.numa.judging import is_settled
from kubenexus.plugins.numa.keeping_off import limited_room
from kubenexus.plugins.numa.request import ISOLATED, RESTRICTED
from kubenexus.state.numa.columns import NumaColumns, RowNuma
from kubenexus.state.view import Nodes

_UNLIMITED: Final = np.iinfo(np.int64).max


def members_by_row(rules: ClassRules, nodes: Nodes) -> Any:
    """Returns how many members each row of a view takes at most."""
    numa, where = nodes.columns.numa, nodes.where
    codes, reporting = numa.codes[: numa.zones, where], numa.layouts[where] >= 0
    found = np.full(nodes.width, _UNLIMITED, np.int64)
    if rules.demand is not None:
        members = _by_kubelet(rules, nodes, codes) if rules.simple else np.ones(nodes.width, np.int64)
        found = np.where(reporting & numa.judged[where] if numa.unjudged else reporting, members, found)
    if rules.own:
        found = np.where(reporting, np.minimum(found, _by_policy(rules, numa, codes)), found)
    return found


def surely_admitted(rules: ClassRules, numa: NumaColumns, row: int, here: RowNuma, members: int) -> bool:
    """Returns whether it is certain, without admitting them one after the other, that a row takes so many members: each
    gets all of one NUMA node, or only totals count."""
    if rules.demand is None:
        return True
    if not rules.simple or len(rules.containers) != 1:
        return False
    each, codes = rules.containers[0], numa.codes_of(row)
    if not is_settled(each, numa, codes) or not _has_totals(each.demand, here, members):
        return False
    if here.reported.kubelet.policy in (NONE, BEST_EFFORT):
        return not (here.reported.kubelet.static_memory and each.demand.memory)
    return sum(each.room.row(numa.states, codes)) >= members


def _by_kubelet(rules: ClassRules, nodes: Nodes, codes: Any) -> Any:
    numa, where = nodes.columns.numa, nodes.where
    members = np.full(codes.shape[1], _UNLIMITED, np.int64)
    for each in rules.containers:
        bits = np.bitwise_or.reduce(each.bits.many(numa.states, codes), axis=0)
        room = limited_room(rules, nodes, each.room.many(numa.states, codes)).sum(axis=0, dtype=np.int64)
        settled = (bits & each.decided) == each.decided
        members = np.where(settled, np.minimum(room, _by_totals(each.demand, numa, where)), 1)
    return members


def _by_totals(demand: ContainerDemand, numa: NumaColumns, where: Any) -> Any:
    found: Any = _UNLIMITED
    if demand.cpus:
        found = np.minimum(numa.free_cpus[where], numa.whole_cores[where]) // demand.cpus
    for resource, number in demand.devices:
        free = numa.free_devices(resource)
        if number and free is not None:
            found = np.minimum(found, free[where] // number)
    return found


def _has_totals(demand: ContainerDemand, here: RowNuma, members: int) -> bool:
    totals = here.totals
    if min(totals.cpus, totals.whole_cores) < demand.cpus * members:
        return False
    for resource, number in demand.devices:
        if totals.devices.get(resource, number * members) < number * members:
            return False
    return True


def _by_policy(rules: ClassRules, numa: NumaColumns, codes: Any) -> Any:
    """Returns how many members get NUMA nodes as their own policy wants them."""
    bits = rules.policy.many(numa.states, codes)
    if rules.request.policy == ISOLATED:
        return ((bits & own_policy.IDLE) > 0).sum(axis=0)
    could = (np.bitwise_or.reduce(bits, axis=0) & own_policy.COULD) > 0
    wide = _UNLIMITED if rules.request.policy != RESTRICTED and not rules.request.stated else 1
    return np.where(could, rules.policy_room.many(numa.states, codes).sum(axis=0, dtype=np.int64), wide)
