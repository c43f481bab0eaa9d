"""Objects other than nodes and pods: what the API server has of devices, claims, owners, namespaces and storage."""

from itertools import islice
from typing import Any

from kubenexus.api.devices.device_taint_rule import DeviceTaintRule
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.api.devices.resource_claim import DeviceClass, ResourceClaim
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.api.storage import StorageObject
from kubenexus.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from kubenexus.state.demand import Demand
from kubenexus.state.devices.inventory import DeviceInventory
from kubenexus.state.disruption_budgets import DisruptionBudgets
from kubenexus.state.kueue_workloads import KueueWorkloads
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.state.reservations.objects import ReservationObjects
from kubenexus.state.reservations.table import ReservationTable
from kubenexus.state.tenants import Tenants
from kubenexus.state.volumes.store import ChangedRows


class ClusterObjects:
    """The part of the ledger that objects other than nodes and pods change. `generation` grows with every change."""

    def __init__(self, tenants: Tenants | None) -> None:
        self.nodes = NodeColumns(tenants)
        self.generation = 0
        self.groups = PodGroupStore()
        self.kueue_workloads = KueueWorkloads(self.groups)
        self.disruption_budgets: DisruptionBudgets = self.nodes.pods.victims.budgets
        self.reservations = ReservationTable(self.nodes)
        self.reservation_objects = ReservationObjects()
        self._inventory = DeviceInventory()

    def upsert_resource_slice(self, thing: ResourceSlice) -> None:
        """Adds or updates a ResourceSlice. Devices count once all slices of their pool's generation are known."""
        self._inventory.set_slice(thing.metadata.name, thing)
        self.generation += 1
        self.nodes.claims.set_slice(thing)

    def remove_resource_slice(self, name: str) -> None:
        self._inventory.set_slice(name, None)
        self.generation += 1
        self.nodes.claims.remove_slice(name)

    def upsert_device_taint_rule(self, rule: DeviceTaintRule) -> None:
        """Adds or updates a DeviceTaintRule. Its taint counts on the devices that it selects."""
        self.nodes.claims.set_taint_rule(rule)
        self.generation += 1

    def remove_device_taint_rule(self, name: str) -> None:
        self.nodes.claims.remove_taint_rule(name)
        self.generation += 1

    def upsert_resource_claim(self, claim: ResourceClaim) -> None:
        """Adds or updates a ResourceClaim. What its status allocates counts as held."""
        self.nodes.claims.set_claim(claim)
        self.generation += 1

    def remove_resource_claim(self, key: str) -> None:
        self.nodes.claims.remove_claim(key)
        self.generation += 1

    def upsert_node_topology(self, thing: NodeResourceTopology) -> None:
        """Adds or updates the NodeResourceTopology of a node, which has the node's name."""
        self._inventory.set_topology(thing.metadata.name, thing)

    def remove_node_topology(self, name: str) -> None:
        self._inventory.set_topology(name, None)

    def take_node_warnings(self) -> dict[str, tuple[str, ...]]:
        """Returns the warnings about labels and annotations, by node, that came or changed since the last call."""
        return self._inventory.take_warnings()

    @property
    def has_unread_devices(self) -> bool:
        return self._inventory.unread > 0 or self.nodes.claims.outdated > 0

    def upsert_device_class(self, device_class: DeviceClass) -> None:
        self.nodes.claims.set_class(device_class)
        self._delegate()

    def remove_device_class(self, name: str) -> None:
        self.nodes.claims.remove_class(name)
        self._delegate()

    def upsert_owner(self, owner: Service | ReplicationController | ReplicaSet | StatefulSet) -> None:
        """Adds or updates a service or controller. Raises Malformed if its selector cannot be read."""
        self.generation += 1
        self.nodes.default_selectors.seen(owner)

    def remove_owner(self, kind: type[Any], namespace: str, name: str) -> None:
        self.generation += 1
        self.nodes.default_selectors.gone(kind, namespace, name)

    def upsert_namespace(self, namespace: Namespace) -> None:
        self._namespace(namespace.metadata.name, namespace.metadata.labels)

    def remove_namespace(self, name: str) -> None:
        self._namespace(name, None)

    def upsert_disruption_budget(self, budget: PodDisruptionBudget) -> None:
        """Adds or updates a PodDisruptionBudget. One whose selector cannot be read selects nothing, as upstream."""
        if self.disruption_budgets.set(budget):
            self.nodes.pods.budgets_changed(budget.metadata.namespace)
        self.generation += 1

    def remove_disruption_budget(self, key: str) -> None:
        if self.disruption_budgets.remove(key):
            self.nodes.pods.budgets_changed(key.partition("/")[0])
        self.generation += 1

    def select_budgets(self) -> None:
        """Finds the budgets of pods again where budgets changed."""
        self.nodes.pods.select_budgets()

    def upsert_storage(self, thing: StorageObject) -> set[int]:
        """Adds or updates a volume, a claim or another storage object. Raises Malformed and then changes nothing."""
        return self._storage(self.nodes.volumes.seen(thing))

    def remove_storage(self, kind: type[StorageObject], key: str) -> set[int]:
        """Removes a storage object. `key` is `namespace/name`, or the name alone of a kind without namespaces."""
        return self._storage(self.nodes.volumes.gone(kind, key))

    def set_demand(self, demand: Demand | None) -> None:
        """Sets what pods are expected to ask for; None: too little is known."""
        self.nodes.demand = demand
        self.nodes.demand_version += 1
        self.generation += 1

    def _namespace(self, name: str, labels: dict[str, str] | None) -> None:
        self.nodes.pods.upsert_namespace(name, labels)
        self.nodes.tenants.set_namespace(name, labels)
        self.reservations.namespaces_changed()
        self.nodes.cluster_version += 1
        self.generation += 1

    def _storage(self, touched: ChangedRows | None) -> set[int]:
        if touched is None:
            return set()
        for row in touched.nodes:
            self.nodes.node_changes.record(row)
        # If no row is concerned, record any row: caches then compare their versions again.
        for row in touched.usage or islice(self.nodes.row_of.values(), 1):
            self.nodes.usage_changes.record(row)
        self.generation += 1
        return {*touched.usage, *touched.nodes}

    def _delegate(self) -> None:
        self.nodes.set_device_class_resources(frozenset(self.nodes.claims.class_of_resource))
        self.generation += 1
