"""ResourceSlices and nodes of GPU machines, in one line each."""

from collections.abc import Mapping
from typing import Any

from kubenexus.api.core import Node
from kubenexus.api.devices.resource_slice import (
    DeviceAttribute,
    DeviceCapacity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
    SliceDevice,
)
from kubenexus.api.keys import gpu
from kubenexus.api.meta import ObjectMeta
from kubenexus.testing.builders import GPU, a_node

DRIVER = "gpu.nvidia.com"


def a_device(name: str, memory: str = "80Gi", *, node: str = "", **attributes: Any) -> SliceDevice:
    """A device of a slice. `attributes` are texts, numbers or lists of texts."""
    return SliceDevice(
        name=name,
        node_name=node,
        capacity={"memory": DeviceCapacity(value=memory)},
        attributes={key: _attribute(value) for key, value in attributes.items()},
    )


def _attribute(value: Any) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(flag=value)
    if isinstance(value, int):
        return DeviceAttribute(number=value)
    return DeviceAttribute(strings=value) if isinstance(value, list) else DeviceAttribute(string=value)


def a_slice(
    name: str,
    node: str,
    *devices: SliceDevice,
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    driver: str = DRIVER,
) -> ResourceSlice:
    """A slice of a node's pool; without a node its devices have their own."""
    return ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool or node, generation=generation, resource_slice_count=count),
            node_name=node,
            per_device_node_selection=not node,
            devices=list(devices),
        ),
    )


def gpus(count: int, first: int = 0, **fields: Any) -> list[SliceDevice]:
    return [a_device(f"gpu-{first + i}", **fields) for i in range(count)]


def a_gpu_node(
    name: str, number: int = 8, *, shared: bool = False, vram: str = "80Gi", labels: Mapping[str, str] | None = None
) -> Node:
    """A node with GPUs that are known by its labels and by what its kubelet offers."""
    marks = {gpu.VRAM.key: vram} if vram else {}
    marks |= {gpu.SHARED.key: "true"} if shared else {}
    return a_node(
        name, cpu=512, pods=500, resources={GPU: number} if number else {}, labels={**marks, **(labels or {})}
    )
