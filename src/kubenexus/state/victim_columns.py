"""The columns that preemption reads of pods on nodes, by the pods' slots (`pod_columns`)."""

import math

import numpy as np

from kubenexus.api.keys import tenant
from kubenexus.base.arrays import IntColumn, grow
from kubenexus.state.disruption_budgets import NO_BUDGET, DisruptionBudgets
from kubenexus.state.pod_kinds import PodKinds
from kubenexus.state.pods import PodRecord

_QUEUE = tenant.QUEUE.key


class VictimColumns:
    """One entry for each pod that counts on a node.

        kind    its index in `kinds`
        started when it started, infinite if it has not
        since   since when its work would be lost: its start, or its last checkpoint; infinite if it has not started
        budget  the code of its PodDisruptionBudget

    Only `PodColumns` writes here.
    """

    def __init__(self) -> None:
        self.kinds = PodKinds()
        self.budgets = DisruptionBudgets()
        self.kind = np.zeros(64, np.int64)
        self.started, self.since = np.full(64, np.inf), np.full(64, np.inf)
        self.budget = np.full(64, NO_BUDGET, np.int64)
        self.records: list[PodRecord | None] = [None] * 64
        self.slot_of: dict[str, int] = {}  # by UID

    def grow(self, capacity: int) -> None:
        self.kind, self.since = grow(self.kind, capacity), grow(self.since, capacity)
        self.started = grow(self.started, capacity)
        self.budget = grow(self.budget, capacity, NO_BUDGET)
        self.records += [None] * (capacity - len(self.records))

    def add(self, slot: int, record: PodRecord) -> None:
        self.kind[slot] = self.kinds.enter(record, record.labels.get(_QUEUE))
        self.started[slot], self.since[slot] = record.started_at, work_begins(record)
        self.budget[slot] = self.budgets.code_of(record) if len(self.budgets) else NO_BUDGET
        self.records[slot] = record
        self.slot_of.setdefault(record.uid, slot)  # a pod that counts twice, in a trial, keeps its own slot

    def remove(self, slot: int) -> None:
        self.kinds.leave(int(self.kind[slot]))
        record, self.records[slot] = self.records[slot], None
        if record is not None and self.slot_of.get(record.uid) == slot:
            del self.slot_of[record.uid]

    def update(self, record: PodRecord) -> None:
        """Reads a record again that counts already: its traits, its start, its labels."""
        slot = record.slot
        if slot < 0:
            return
        self.kinds.leave(int(self.kind[slot]))
        self.kind[slot] = self.kinds.enter(record, record.labels.get(_QUEUE))
        self.started[slot], self.since[slot] = record.started_at, work_begins(record)
        self.budget[slot] = self.budgets.code_of(record)

    def select_again(self, namespace: str, slots: IntColumn) -> None:
        """Compares the pods of a namespace with its budgets again, as far as that is not too much work."""
        self.budgets.limit(namespace, len(slots))
        for slot in slots.tolist():
            record = self.records[slot]
            if record is not None:
                self.budget[slot] = self.budgets.code_of(record)


def work_begins(record: PodRecord) -> float:
    """Returns since when the work of a pod would be lost."""
    if record.started_at == math.inf:
        return math.inf
    return max(record.started_at, record.saved_at)
