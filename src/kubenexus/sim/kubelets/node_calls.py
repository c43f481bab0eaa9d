"""The calls of an agent about its node: registration, heartbeats, taints, extended resources."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubenexus.api.core import Taint
from kubenexus.api.keys import network
from kubenexus.api.resource_names import is_extended
from kubenexus.base.timestamps import format_micro_time, format_time
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import STRATEGIC_PATCH, Call
from kubenexus.sim.kubelets.annotations import AGENT
from kubenexus.sim.kubelets.types import Node

HOSTNAME = network.HOSTNAME.key
ZONE = "topology.kubernetes.io/zone"
LEASES = "kube-node-lease"
# The taints that the API server and the node lifecycle controller set on a node that is not ready.
UNWELL = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class NodeTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that differ only in their names: `<prefix>0`, `<prefix>1`, ... The `zones` are assigned in rotation."""

    prefix: str = "agent-"
    capacity: Mapping[str, str] = msgspec.field(default_factory=lambda: {"cpu": "32", "memory": "128Gi", "pods": "110"})
    labels: Mapping[str, str] = {}
    taints: Sequence[Taint] = ()
    zones: Sequence[str] = ()

    def nodes(self, count: int, now: float) -> Iterator[Call]:
        """Returns the calls that register `count` nodes."""
        return (verbs.create(kinds.NODES, self.body(number, now)) for number in range(count))

    def body(self, number: int, now: float) -> dict[str, Any]:
        """Returns the whole node, ready from the start."""
        name = f"{self.prefix}{number}"
        zone = {ZONE: self.zones[number % len(self.zones)]} if self.zones else {}
        labels = {AGENT: "true", HOSTNAME: name, "kubernetes.io/os": "linux", **zone, **self.labels}
        taints = [{"key": each.key, "value": each.value, "effect": each.effect} for each in self.taints]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints},
            "status": {
                "capacity": self.capacity,
                "allocatable": self.capacity,
                "conditions": [_ready(now, since=now)],
                "addresses": [
                    {"type": "InternalIP", "address": _address(number)},
                    {"type": "Hostname", "address": name},
                ],
            },
        }


def ready(name: str, now: float) -> Call:
    """Returns the call that sets the node ready, with a new transition time."""
    return _status(name, _ready(now, since=now))


def still_ready(name: str, now: float) -> Call:
    """Returns the heartbeat in the status, which is sent every few minutes."""
    return _status(name, _ready(now))


def untainted(node: Node) -> Call | None:
    """Returns the call that removes the taints of `UNWELL`, or None. It fails with a Conflict if the node has
    changed."""
    if not any(taint.key in UNWELL for taint in node.spec.taints):
        return None
    left = [taint for taint in node.spec.taints if taint.key not in UNWELL]
    body = {"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": left}}
    return verbs.patch(kinds.NODES, "", node.metadata.name, body)


def offered(node: Node) -> Call | None:
    """Returns the call that copies extended resources from the capacity to the allocatable amounts, or None if equal.

    Kubelets do this when resources are added to, or removed from, the capacity.
    """
    capacity = {name: amount for name, amount in node.status.capacity.items() if is_extended(name)}
    known = {name: amount for name, amount in node.status.allocatable.items() if is_extended(name)}
    if capacity == known:
        return None
    body = {"status": {"allocatable": {**dict.fromkeys(known), **capacity}}}  # null removes a resource
    return verbs.patch(kinds.NODES, "", node.metadata.name, body, part="status", content_type=STRATEGIC_PATCH)


def lease(node: Node, now: float, seconds: int) -> Call:
    """Returns the call that creates the lease. The node owns it, so that it is deleted with the node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.metadata.name, "uid": node.metadata.uid}
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node.metadata.name, "namespace": LEASES, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": node.metadata.name,
            "leaseDurationSeconds": seconds,
            "renewTime": format_micro_time(now),
        },
    }
    return verbs.create(kinds.LEASES, body, LEASES)


def renewed(name: str, now: float) -> Call:
    """Returns the heartbeat that is sent every few seconds; NotFound if there is no lease yet."""
    return verbs.patch(kinds.LEASES, LEASES, name, {"spec": {"renewTime": format_micro_time(now)}})


def _status(name: str, condition: Mapping[str, str]) -> Call:
    body = {"status": {"conditions": [condition]}}
    return verbs.patch(kinds.NODES, "", name, body, part="status", content_type=STRATEGIC_PATCH)


def _ready(now: float, since: float | None = None) -> dict[str, str]:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "agent is posting ready status",
    }
    moved = {} if since is None else {"lastTransitionTime": format_time(since)}
    return {**condition, **moved, "lastHeartbeatTime": format_time(now)}


def _address(number: int) -> str:
    """Returns an address of a private network that pods do not use: 10.0.0.1 and following."""
    high, low = divmod(number + 1, 256)
    return f"10.{high // 256}.{high % 256}.{low}"
