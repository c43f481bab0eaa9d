"""Nodes without machines: what an agent registers, and how it keeps the cluster believing in them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubenexus.api.core import Taint
from kubenexus.api.resource_names import is_extended
from kubenexus.base.timestamps import format_micro_time, format_time
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import STRATEGIC_PATCH, Call
from kubenexus.sim.kubelets.annotations import AGENT
from kubenexus.sim.kubelets.types import Node

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
LEASES = "kube-node-lease"
# What the API server and the node lifecycle controller put on a node that is not known to be well.
UNWELL = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class NodeTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are all alike but for their names: `<prefix>0`, `<prefix>1`, ... in `zones` by turns."""

    prefix: str = "agent-"
    capacity: Mapping[str, str] = msgspec.field(default_factory=lambda: {"cpu": "32", "memory": "128Gi", "pods": "110"})
    labels: Mapping[str, str] = {}
    taints: Sequence[Taint] = ()
    zones: Sequence[str] = ()

    def nodes(self, count: int, now: float) -> Iterator[Call]:
        """The calls that register so many."""
        return (verbs.create(kinds.NODES, self.body(number, now)) for number in range(count))

    def body(self, number: int, now: float) -> dict[str, Any]:
        """The whole node, ready from the start."""
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
    """It is well, as of now."""
    return _status(name, _ready(now, since=now))


def still_ready(name: str, now: float) -> Call:
    """The heartbeat in the status, which comes every few minutes."""
    return _status(name, _ready(now))


def untainted(node: Node) -> Call | None:
    """Without the taints of a node that is not well; None if it has none. A Conflict if it has changed meanwhile."""
    if not any(taint.key in UNWELL for taint in node.spec.taints):
        return None
    left = [taint for taint in node.spec.taints if taint.key not in UNWELL]
    body = {"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": left}}
    return verbs.patch(kinds.NODES, "", node.metadata.name, body)


def offered(node: Node) -> Call | None:
    """Extended resources that somebody wrote into the capacity (or took out of it) are offered from now on (or no
    longer), as kubelets do it; None if they are already."""
    capacity = {name: amount for name, amount in node.status.capacity.items() if is_extended(name)}
    known = {name: amount for name, amount in node.status.allocatable.items() if is_extended(name)}
    if capacity == known:
        return None
    body = {"status": {"allocatable": {**dict.fromkeys(known), **capacity}}}  # null takes a resource away
    return verbs.patch(kinds.NODES, "", node.metadata.name, body, part="status", content_type=STRATEGIC_PATCH)


def lease(node: Node, now: float, seconds: int) -> Call:
    """The first heartbeat. The lease goes when the node goes."""
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
    """The heartbeat that comes every few seconds; NotFound if there is no lease yet."""
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
    """Some address of a private network, not used by pods: 10.0.0.1 and on."""
    high, low = divmod(number + 1, 256)
    return f"10.{high // 256}.{high % 256}.{low}"
