"""The state as of a generation. A snapshot copies no array: it compares its generation with the ledger's at each
read."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kubenexus.base.errors import KubeNexusError
from kubenexus.state.disruption_budgets import DisruptionBudgets
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.state.pods import PodRecord
from kubenexus.state.queues.queue_tree import QueueTree
from kubenexus.state.reservations.table import ReservationTable
from kubenexus.state.transaction import Transaction

if TYPE_CHECKING:
    from kubenexus.state.kept_capacity import NominatedPods
    from kubenexus.state.ledger import Ledger


class StaleSnapshot(KubeNexusError):
    """The ledger changed since this snapshot was taken: a decision on it would mix two states."""


class Snapshot:
    """Made by `Ledger.snapshot()` for one decision. A decision only tries placements (`attempt`); it commits none."""

    __slots__ = ("_ledger", "generation")

    def __init__(self, ledger: Ledger, generation: int) -> None:
        self._ledger = ledger
        self.generation = generation

    @property
    def nodes(self) -> NodeColumns:
        if self._ledger.generation != self.generation:
            raise StaleSnapshot(f"snapshot of generation {self.generation}, ledger at {self._ledger.generation}")
        return self._ledger.nodes

    def attempt(self) -> Transaction:
        return self._ledger.transaction()

    def on_node(self, name: str) -> list[PodRecord]:
        """Returns the assumed and bound pods of a node, in order of arrival."""
        return self._ledger.on_node(name)

    @property
    def disruption_budgets(self) -> DisruptionBudgets:
        return self._ledger.disruption_budgets

    @property
    def pod_groups(self) -> PodGroupStore:
        return self._ledger.groups

    def is_preempting(self, uid: str) -> bool:
        """Returns whether the pod with this UID waits for victims that this process chose."""
        return uid in self._ledger.preemptions

    @property
    def reservations(self) -> ReservationTable:
        return self._ledger.reservations

    def reservation_users(self, owned: Collection[str], priority: int) -> frozenset[str]:
        """Returns the UIDs of pods on capacity that is reserved for others than the owner of `owned`
        (`ReservationTable.users`)."""
        pods = self._ledger.pods
        return frozenset(pods[key].uid for key in self.reservations.users(owned, priority) if key in pods)

    @property
    def queues(self) -> QueueTree:
        return self._ledger.queues

    def leaving(self) -> list[PodRecord]:
        """Returns the pods that still count and are about to go: terminating ones, and victims of preemptions."""
        victims = self._ledger.nodes.pods.victims
        slots = {victims.slot_of[uid] for uid in self._ledger.preemptions.victims if uid in victims.slot_of}
        slots.update(self._ledger.nodes.pods.terminating)
        return [record for slot in slots if (record := victims.records[slot]) is not None]

    def nominees(self) -> NominatedPods:
        """Returns nominated pods and held capacity by node name and key."""
        return self._ledger.nominated_and_held()
