"""Builds slices, devices and facts of nodes in one line, as drivers and agents write them."""

from typing import Any

from kubenexus.api.codec import from_data
from kubenexus.api.core import Node, NodeStatus
from kubenexus.api.devices.device import NodeDevices
from kubenexus.api.devices.inventory import NodeFacts, node_devices, node_facts
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.api.meta import ObjectMeta

GIB = 2**30
NVIDIA_DRIVER = "gpu.nvidia.com"


def attribute(value: object) -> dict[str, object]:
    """An attribute in the form of its type."""
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, list):
        return {"ints": value} if isinstance(value[0], int) else {"strings": value}
    return {"int": value} if isinstance(value, int) else {"string": value}


def a_device(
    name: str = "gpu-0", *, memory: str | None = None, taint: str = "", **attributes: object
) -> dict[str, Any]:
    """A device of a slice. `__` in the name of an attribute stands for a slash, so that it can have a domain."""
    device: dict[str, Any] = {"name": name}
    device["attributes"] = {key.replace("__", "/"): attribute(value) for key, value in attributes.items()}
    if memory is not None:
        device["capacity"] = {"memory": {"value": memory}}
    if taint:
        device["taints"] = [{"key": "example.com/broken", "effect": taint}]
    return device


def a_slice(
    *devices: dict[str, Any],
    driver: str = NVIDIA_DRIVER,
    pool: str = "n1",
    generation: int = 1,
    count: int = 1,
    name: str = "n1-gpu",
    node: str = "n1",
    **spec: object,
) -> ResourceSlice:
    found: dict[str, Any] = {"driver": driver, "nodeName": node, "devices": list(devices), **spec}
    found["pool"] = {"name": pool, "generation": generation, "resourceSliceCount": count}
    return from_data({"metadata": {"name": name}, "spec": found}, ResourceSlice)


def facts(
    labels: dict[str, str] | None = None,
    offered: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
) -> NodeFacts:
    """The facts of a node with these labels, that offers these resources."""
    metadata = ObjectMeta(name="n1", labels=labels or {}, annotations=annotations or {})
    return node_facts(Node(metadata=metadata, status=NodeStatus(allocatable={"cpu": "8", **(offered or {})})))


def devices_of(labels: dict[str, str] | None = None, offered: dict[str, Any] | None = None) -> NodeDevices:
    """The devices of a node with these labels, that offers these resources."""
    return node_devices(facts(labels, offered))


def zones(**gpus: dict[str, str]) -> NodeResourceTopology:
    """A topology with a zone for each keyword: `node_0={"nvidia.com/gpu": "4"}`."""
    listed = [
        {
            "name": name.replace("_", "-"),
            "type": "Node",
            "resources": [{"name": key, "capacity": amount} for key, amount in held.items()],
        }
        for name, held in gpus.items()
    ]
    return from_data({"metadata": {"name": "n1"}, "zones": listed}, NodeResourceTopology)


def column(found: NodeDevices, field: str) -> list[Any]:
    """One field of all devices."""
    return [getattr(device, field) for device in found.devices]


def gfd(product: str = "NVIDIA-H100-80GB-HBM3", memory: str = "81559", count: str = "8", **more: str) -> dict[str, str]:
    """Labels of GPU Feature Discovery; `more` are further ones of `nvidia.com/gpu.`"""
    labels = {"product": product, "memory": memory, "count": count, **more}
    return {f"nvidia.com/gpu.{key.replace('_', '-')}": value for key, value in labels.items() if value}
