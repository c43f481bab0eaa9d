"""Nodes in zones, regions and racks, pods of workloads, and the scores of TopologyScoring on them."""

from collections.abc import Mapping

from msgspec.structs import replace

from kubenexus.api.core import Node, Pod
from kubenexus.api.keys import network, workload
from kubenexus.api.meta import OwnerReference
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import ZONE, a_node, a_pod

NAME = "TopologyScoring"
PLUGINS = profile_plugins(shipped_profile())
KEYS = {"zone": ZONE, "region": network.REGION.key, "rack": network.RACK.key}
P = "topology.kubenexus.io/"


def place(name: str, said: Mapping[str, str] | None = None, **more: str) -> Node:
    """A node with these labels: `zone`, `region`, `rack`, or a whole key."""
    return a_node(name, cpu=64, labels={KEYS.get(key, key): value for key, value in {**(said or {}), **more}.items()})


def own_pod(
    name: str = "new",
    node: str = "",
    *,
    owner: str = "rs-1",
    kind: str = "ReplicaSet",
    notes: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    work: str = "service",
    terminating: bool = False,
    namespace: str = "default",
) -> Pod:
    """A pod of the workload `owner`, on a node or waiting."""
    pod = a_pod(
        name,
        node=node,
        namespace=namespace,
        labels={**(labels or {}), **({workload.TYPE.key: work} if work else {})},
        annotations={f"{P}{key}": value for key, value in (notes or {}).items()},
    )
    owners = [OwnerReference(kind=kind, name=owner, uid=owner, api_version="apps/v1", controller=True)] if owner else []
    meta = replace(pod.metadata, owner_references=owners, deletion_timestamp="2026-01-01T00:00:00Z" * terminating)
    return replace(pod, metadata=meta)


def points(pod: Pod, ledger: Ledger, cache: ClassCache | None = None) -> dict[str, int]:
    """The normalised score of each node. Looks the pod up in `cache`, which may have seen other states."""
    columns, cache = ledger.nodes, ClassCache(PLUGINS) if cache is None else cache
    table = cache.lookup(pod, columns).table
    (column,) = [score for score in table.scores if score.plugin.name == NAME]
    column.measure(table.feasible, table.version)
    return {name: column.values.points_at(row) for name, row in columns.row_of.items()}
