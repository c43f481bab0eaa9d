"""Pods that may go because their queues borrow what the job's queue is guaranteed."""

import heapq
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.queues.settings import tier_of
from kubenexus.api.resource_names import PODS
from kubenexus.framework.job import Job
from kubenexus.queue.fair.job_request import job_request
from kubenexus.state.devices.hardware_tiers import hardware_tiers, tier_codes
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.queues.queue_tree import QueueTree
from kubenexus.state.queues.reclaim import Expected, Loss, Reclaim
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.view import Nodes

# Among so many jobs, and pods of these, those are looked for that can all go together: 20 ms.
MOST_TOGETHER: Final = 1_000
MOST_PODS: Final = 2_000


class TakenBack(NamedTuple):
    """What may be taken back for a job. `pods` is a mask over slots, and so is `leaving`: the pods that go for other
    jobs, without which `reclaim` counts already."""

    pods: Any
    leaving: Any
    reclaim: Reclaim
    tree: QueueTree


class TakenBackPods:
    """The same for the pods of a pool, by index. Their kinds are read at once: these change while pods are moved in
    trials."""

    def __init__(self, taken_back: TakenBack, slots: Any, rows: Any, kind: Any, columns: NodeColumns) -> None:
        self._taken_back, self._kind, self._rows, self._names = taken_back, kind, rows, columns.names
        kinds = columns.pods.victims.kinds
        self.pods, self._leaving = taken_back.pods[slots], taken_back.leaving[slots]
        self._uses: Mapping[int, Loss] = {code: kinds.uses(code) for code in np.unique(kind).tolist()}

    def allows(self, chosen: Iterable[int]) -> bool:
        """Whether all queues that pods are taken back from keep their guarantees without these pods."""
        losses = [(index, self._loss(index)) for index in chosen if not self._leaving.item(index)]
        namespaces = {loss[0] for index, loss in losses if self.pods.item(index)}
        return not namespaces or self._taken_back.reclaim.allows([loss for _, loss in losses], namespaces)

    def queues(self, chosen: Iterable[int]) -> tuple[str, ...]:
        """Returns the queues of those of these pods that are taken back for this job: not of those that go anyway."""
        taken = [index for index in chosen if self.pods.item(index) and not self._leaving.item(index)]
        namespaces = [self._uses[self._kind.item(index)][0] for index in taken]
        return tuple(sorted([self._taken_back.tree.queue_of(each).name for each in namespaces]))

    def _loss(self, index: int) -> Loss:
        namespace, amounts = self._uses[self._kind.item(index)]
        return namespace, self._taken_back.tree.on_node(self._names[self._rows.item(index)], amounts)


def take_back(job: Job, snapshot: Snapshot, among: Any, *, together: bool = False) -> TakenBack | None:
    """Returns which of these pods use what the job's queue may take back: those of queues that borrow, of no more
    priority. The nomination of the job keeps the capacity from all of them. `together`: only pods that can all go
    without pushing a queue below its guarantee. None if there is none."""
    pods, kinds = snapshot.nodes.pods, snapshot.nodes.pods.victims.kinds
    reclaim = Reclaim(snapshot.queues, job.namespace, *job_request(job), _expected(job, snapshot))
    rows, priority, namespaces = pods.placed
    found, kind = np.zeros(len(priority), np.bool_), pods.victims.kind[: len(priority)]
    for resource, borrowed in _by_resource(reclaim).items():
        codes = [pods.namespace_code(namespace) for namespace in borrowed]
        limits = np.zeros(max(int(namespaces.max(initial=0)), *codes) + 2)
        limits[codes] = list(borrowed.values())
        limits[-1] = 0.0  # of namespaces without pods on nodes, whose code is -1
        amounts = kinds.amounts(resource.partition("@")[0])[kind]
        found |= (amounts > 0) & (amounts <= limits[namespaces]) & _on_tier(resource, rows, snapshot.nodes)
    found &= among & (priority <= min(pod.spec.priority for pod in job.pods))
    leaving, slot_of = np.zeros(len(priority), np.bool_), pods.victims.slot_of
    leaving[[slot_of[record.uid] for record in snapshot.leaving() if record.uid in slot_of]] = True
    if together:
        found = (found & leaving) | _together(found & ~leaving, reclaim, snapshot)
    return TakenBack(found, leaving, reclaim, snapshot.queues) if found.any() else None


def _by_resource(reclaim: Reclaim) -> dict[str, dict[str, int]]:
    """Returns what namespaces borrow, by resource: there may be a thousand namespaces, and there are few resources."""
    found: dict[str, dict[str, int]] = {}
    for namespace, borrowed in reclaim.borrowed.items():
        for resource, most in borrowed.items():
            if resource != PODS:
                found.setdefault(resource, {})[namespace] = most
    return found


def _on_tier(resource: str, rows: Any, columns: NodeColumns) -> Any:
    """Returns which pods are on nodes of the tier of a resource; True for all if it has none."""
    tier = tier_of(resource)
    return hardware_tiers(Nodes(columns))[rows] == tier_codes((tier,))[0] if tier else True


def _together(found: Any, reclaim: Reclaim, snapshot: Snapshot) -> Any:
    """Returns which of these pods can all go: those of the lowest priority first, then those that lose least."""
    pods = snapshot.nodes.pods
    victims, priority = pods.victims, pods.placed[1]
    jobs: dict[tuple[int, int], list[int]] = {}
    for slot in _first_to_go(np.flatnonzero(found), snapshot).tolist():
        gang = victims.kinds.gang.item(victims.kind.item(slot))
        jobs.setdefault((gang, -1) if gang >= 0 else (-1, slot), []).append(slot)

    def loss(slot: int) -> Loss:
        namespace, amounts = victims.kinds.uses(victims.kind.item(slot))
        return namespace, snapshot.queues.on_node(snapshot.nodes.names[pods.placed[0].item(slot)], amounts)

    def order(slots: list[int]) -> tuple[int, float, str]:
        uids = [record.uid for slot in slots if (record := victims.records[slot]) is not None]
        return max([priority.item(slot) for slot in slots]), -min([victims.since.item(s) for s in slots]), min(uids)

    some = heapq.nsmallest(MOST_TOGETHER, jobs.values(), key=order)
    losses = [[loss(slot) for slot in slots] for slots in some]
    left = np.zeros(len(found), np.bool_)
    for slots, may_go in zip(some, reclaim.together(losses), strict=True):
        left[slots] = may_go
    return left


def _first_to_go(slots: Any, snapshot: Snapshot) -> Any:
    """Returns the slots of the jobs that would go first, in the order of `_together`: no more than can be looked at one
    by one. Larger gangs are left out."""
    victims, priority = snapshot.nodes.pods.victims, snapshot.nodes.pods.placed[1]
    gangs = victims.kinds.gang[victims.kind[slots]]
    _, job = np.unique(np.where(gangs >= 0, gangs, -1 - np.arange(len(slots))), return_inverse=True)
    sizes = np.bincount(job)
    highest, since = np.full(len(sizes), np.iinfo(np.int64).min), np.full(len(sizes), np.inf)
    np.maximum.at(highest, job, priority[slots])
    np.minimum.at(since, job, victims.since[slots])
    order = np.lexsort((-since, highest))
    order = order[sizes[order] <= MOST_PODS][:MOST_TOGETHER]
    chosen = np.zeros(len(sizes), np.bool_)
    chosen[order[np.cumsum(sizes[order]) <= MOST_PODS]] = True
    return slots[chosen[job]]


def _expected(job: Job, snapshot: Snapshot) -> Expected:
    """Returns what queues will use after the preemptions under way, this job's own aside."""
    expected, own = Expected(snapshot.queues), {pod.metadata.uid for pod in job.pods}
    for records in snapshot.nominees().values():
        for record in records.values():
            if record.uid not in own:
                expected.add(record.namespace, record.node, record.footprint.amounts, +1)
    for record in snapshot.leaving():
        expected.add(record.namespace, record.node, record.footprint.amounts, -1)
    return expected
