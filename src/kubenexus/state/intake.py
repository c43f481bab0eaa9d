"""How the ledger is told of each kind of object: one table for the live watch, for files and for tests."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kubenexus.api.core import DeviceClass, Node, Pod
from kubenexus.api.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from kubenexus.state.ledger import Ledger


class Kind(NamedTuple):
    """The type a kind is decoded as, and the ledger's method for one that was added or changed."""

    type: type[Any]
    seen: Callable[[Ledger, Any], object]


KINDS: dict[str, Kind] = {
    "Namespace": Kind(Namespace, Ledger.namespace_seen),
    "DeviceClass": Kind(DeviceClass, Ledger.device_class_seen),
    "Service": Kind(Service, Ledger.owner_seen),
    "ReplicationController": Kind(ReplicationController, Ledger.owner_seen),
    "ReplicaSet": Kind(ReplicaSet, Ledger.owner_seen),
    "StatefulSet": Kind(StatefulSet, Ledger.owner_seen),
    "Node": Kind(Node, Ledger.node_seen),
    "Pod": Kind(Pod, Ledger.pod_seen),
}


def tell(ledger: Ledger, kind: str, thing: Any) -> None:
    """Raises Malformed when the object cannot be used."""
    KINDS[kind].seen(ledger, thing)
