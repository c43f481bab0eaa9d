"""Limits of queues as numbers: what is left of each, and what waiting and running jobs take of it.

A limit is that of one queue or namespace for one resource, on all nodes or on those of a hardware tier. What queues do
not lend counts as used in the scheduler; it moves with the use of others and is not foreseen here.
"""

from collections.abc import Iterable

from kubenexus.api.queues.settings import tier_of
from kubenexus.api.resource_names import PODS, Amounts
from kubenexus.framework.aging import CRITICAL
from kubenexus.framework.job import Job
from kubenexus.plan.eta.queue_model import TierUse, Uses
from kubenexus.queue.fair.job_request import job_request
from kubenexus.state.devices.hardware_tiers import tier_codes
from kubenexus.state.pods import PodRecord
from kubenexus.state.queues.queue_node import QueueNode
from kubenexus.state.queues.queue_tree import QueueTree


class QueueLimits:
    """The limits that jobs were asked about, by number. `left` is what may still be used of each; less than nothing if
    more is in use than a limit allows."""

    def __init__(self, tree: QueueTree | None) -> None:
        self._tree = tree if tree is not None and tree.is_active else None
        self._numbers: dict[tuple[QueueNode, str], int] = {}
        self.left: list[int] = []

    def of_job(self, job: Job) -> tuple[Uses, tuple[TierUse, ...]]:
        """Returns what a job that starts takes of limits, and what of those of each tier if it is there as a whole."""
        tree = self._tree
        if tree is None or (job.priority >= CRITICAL and not tree.is_mapped(job.namespace)):
            return (), ()
        asked, pods = tree.beyond_admitted(job.pods[0], *job_request(job))
        wanted = (*asked, (PODS, pods)) if pods else asked
        namespace, tiers = tree.namespace(job.namespace), list[TierUse]()
        for amounts in tree.by_tier(wanted) if tree.has_tiers else ():
            uses = self._uses(namespace, amounts)
            if uses:
                tiers.append(TierUse(tier_codes([tier_of(amounts[0][0])])[0], uses))
        return self._uses(namespace, wanted), tuple(tiers)

    def of_pods(self, records: Iterable[PodRecord]) -> Uses:
        """Returns what pods on nodes give back at their end, of the limits that jobs were asked about."""
        found: dict[int, int] = {}
        if self._tree is None or not self._numbers:
            return ()
        for record in records:
            amounts = self._tree.on_node(record.node, record.footprint.amounts)
            for node in self._tree.namespace(record.namespace).path():
                for name, amount in amounts if node.most else ():
                    number = self._numbers.get((node, name))
                    if number is not None:
                        found[number] = found.get(number, 0) + amount
        return tuple(sorted(found.items()))

    def allow(self, job: Job) -> bool:
        """Whether the job is within all limits now, on nodes of some tier at least."""
        uses, tiers = self.of_job(job)
        if not all(self.left[number] >= amount for number, amount in uses):
            return False
        closed = [tier for tier in tiers if any(self.left[number] < amount for number, amount in tier.uses)]
        return not closed

    def _uses(self, namespace: QueueNode, amounts: Amounts) -> Uses:
        found: list[tuple[int, int]] = []
        for node in namespace.path():
            for name, amount in amounts if node.most else ():
                if amount and name in node.most:
                    found.append((self._number(node, name), amount))
        return tuple(found)

    def _number(self, node: QueueNode, name: str) -> int:
        number = self._numbers.get((node, name))
        if number is None:
            number = self._numbers[node, name] = len(self.left)
            self.left.append(node.most[name] - node.used.get(name, 0))
        return number
