"""Whether a preemption still frees enough on a node, by resources alone. Asked before each eviction."""

from collections.abc import Iterable

from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord
from kubenexus.state.preemptions import PendingPreemption
from kubenexus.state.resources import PODS


def still_fits(ledger: Ledger, node: str, priority: int) -> bool:
    """Returns whether the pods nominated to a node, of this priority or a higher one, fit there once all victims and
    terminating pods are gone. Not if the node is gone."""
    columns = ledger.nodes
    row = columns.row_of.get(node)
    if row is None:
        return False
    there = ledger.on_node(node)
    leaving = [each for each in there if each.terminating or ledger.preemptions.is_victim(each.uid)]
    coming = [each for each in ledger.nominees(node) if each.priority >= priority]
    frees, takes = _sum(leaving), _sum(coming)
    resources = columns.resources
    pods = resources.alloc.item(PODS, row) - resources.used.item(PODS, row)
    if pods + len(leaving) < len(coming):
        return False
    for name, amount in takes.items():
        index = resources.index.get(name)
        free = 0 if index is None else resources.alloc.item(index, row) - resources.used.item(index, row)
        if amount > free + frees.get(name, 0):
            return False
    return True


def waits_for_others(ledger: Ledger, pending: PendingPreemption) -> bool:
    """Returns whether a job whose own victims are gone has its room once those of others are gone, too. Two jobs of one
    priority may share a node, and the one whose victims go first is refused until then: the room is kept for both."""
    nodes = set(pending.nodes.values())
    others = any(ledger.preemptions.is_victim(each.uid) for node in nodes for each in ledger.on_node(node))
    return others and all(still_fits(ledger, node, pending.priority) for node in nodes)


def _sum(records: Iterable[PodRecord]) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for record in records:
        for name, amount in record.footprint.amounts:
            if amount:
                amounts[name] = amounts.get(name, 0) + amount
    return amounts
