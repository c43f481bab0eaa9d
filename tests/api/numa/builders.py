"""Machines and pods for tests about NUMA."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubenexus.api.core import Container, Node, Pod, ResourceRequirements
from kubenexus.api.devices.node_resource_topology import (
    NodeResourceTopology,
    TopologyAttribute,
    Zone,
    ZoneCost,
    ZoneResource,
)
from kubenexus.api.meta import ObjectMeta
from kubenexus.testing.builders import a_node, a_pod

GPU = "nvidia.com/gpu"
Row = tuple[int, int, int]  # capacity, allocatable, available


def guaranteed(name: str = "main", cpu: str = "1", memory: str = "1Gi", gpu: int = 0) -> Container:
    """A container whose limits are its requests."""
    amounts: dict[str, Any] = {"cpu": cpu, "memory": memory, **({GPU: str(gpu)} if gpu else {})}
    return Container(name=name, resources=ResourceRequirements(requests=dict(amounts), limits=dict(amounts)))


def a_numa_pod(*containers: Container, init: Sequence[Container] = (), **more: Any) -> Pod:
    return a_pod(containers=containers or [guaranteed()], init=init, **more)


def an_nrt(
    zones: Sequence[Mapping[str, Row]],
    policy: str = "single-numa-node",
    scope: str = "container",
    name: str = "n",
    near: int = 21,
    **more: Any,
) -> NodeResourceTopology:
    """What an exporter writes for a node with these NUMA nodes."""
    return NodeResourceTopology(
        metadata=ObjectMeta(name=name),
        zones=[
            Zone(
                name=f"node-{number}",
                type="Node",
                costs=[
                    ZoneCost(name=f"node-{other}", value=10 if other == number else near) for other in range(len(zones))
                ],
                resources=[_resource(resource, row) for resource, row in amounts.items()],
            )
            for number, amounts in enumerate(zones)
        ],
        attributes=[
            TopologyAttribute(name="topologyManagerPolicy", value=policy),
            TopologyAttribute(name="topologyManagerScope", value=scope),
        ],
        **more,
    )


def _resource(name: str, row: Row) -> ZoneResource:
    capacity, allocatable, available = map(str, row)
    return ZoneResource(name=name, capacity=capacity, allocatable=allocatable, available=available)


def a_numa_node(**more: Any) -> Node:
    return a_node("n", **{"cpu": 16, "memory": "32Gi", **more})
