"""The NodeResourceTopology of a node, as far as its machine tells: NUMA nodes, distances, and what they have.

It contains what exists, never what is in use: `available` is always all that can be allocated. The scheduler subtracts
the pods itself. A NUMA node lists the CPUs only under the static CPU Manager, and memory only under the static Memory
Manager, as the agents do that ask the kubelet: without these, nothing of them belongs to a pod.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubenexus.api.devices.device import UNKNOWN
from kubenexus.api.devices.device_resources import NVIDIA_GPU
from kubenexus.api.devices.models import AMD, NVIDIA
from kubenexus.api.numa.machine import MAX_NUMA_NODES
from kubenexus.api.numa.reported_node import POLICY_ATTRIBUTE, SCOPE_ATTRIBUTE
from kubenexus.api.resource_names import CPU, MEMORY
from kubenexus.client import kinds
from kubenexus.discovery.kubelet_config import UNKNOWN_KUBELET, KubeletSettings
from kubenexus.discovery.machine import Machine, NumaNode

PUBLISHER: Final = "kubenexus-discovery"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
RESOURCES: Final = {NVIDIA: NVIDIA_GPU, AMD: "amd.com/gpu"}


def topology_object(
    machine: Machine,
    node: str,
    uid: str = "",
    kubelet: KubeletSettings = UNKNOWN_KUBELET,
    offered: Mapping[str, int] | None = None,
) -> dict[str, Any] | None:
    """Returns the object, or None if there is nothing to tell: no managers that are known, no devices, or more NUMA
    nodes than a kubelet handles.

    `offered` is how many of each device resource the kubelet offers; None if that is not known. Devices are left out
    where the number of cards is another one: shares, MIG devices, or a card that is not healthy.
    """
    if not 0 < len(machine.numa_nodes) <= MAX_NUMA_NODES:
        return None
    devices, reserved = _devices(machine, offered), _reserved(machine, kubelet)
    zones = [_zone(each, kubelet, reserved, devices) for each in machine.numa_nodes]
    if not any(zone["resources"] for zone in zones):
        return None
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    attributes = {POLICY_ATTRIBUTE: kubelet.policy, SCOPE_ATTRIBUTE: "pod" if kubelet.pod_scope else "container"}
    return {
        "apiVersion": kinds.NODE_RESOURCE_TOPOLOGIES.api_version,
        "kind": kinds.NODE_RESOURCE_TOPOLOGIES.kind,
        "metadata": {
            "name": node,
            "labels": {MANAGED_BY: PUBLISHER},
            **({"ownerReferences": [owner]} if uid else {}),
        },
        "attributes": [{"name": name, "value": value} for name, value in attributes.items()] if kubelet.known else [],
        "zones": zones,
    }


def _devices(machine: Machine, offered: Mapping[str, int] | None) -> dict[str, Counter[int]]:
    """Returns, by resource, how many cards each NUMA node has."""
    found: dict[str, Counter[int]] = {}
    ids = {node.id for node in machine.numa_nodes}
    for vendor, resource in RESOURCES.items():
        cards = [gpu for gpu in machine.gpus if gpu.vendor == vendor]
        placed = all(gpu.numa in ids and gpu.numa != UNKNOWN and not gpu.divided for gpu in cards)
        if cards and placed and (offered is None or offered.get(resource) == len(cards)):
            found[resource] = Counter(gpu.numa for gpu in cards)
    return found


def _reserved(machine: Machine, kubelet: KubeletSettings) -> frozenset[int]:
    """Returns the CPUs that no pod gets. Where only their number is known, the kubelet takes
    cores of the first NUMA node; which ones does not matter here."""
    if kubelet.reserved_cpus or not kubelet.reserved_number:
        return kubelet.reserved_cpus
    return frozenset(machine.numa_nodes[0].cpus[: kubelet.reserved_number])


def _zone(
    node: NumaNode, kubelet: KubeletSettings, reserved: frozenset[int], devices: Mapping[str, Counter[int]]
) -> dict[str, Any]:
    resources = [*_managed(node, kubelet, reserved)]
    resources += (_amount(name, counts[node.id], counts[node.id]) for name, counts in devices.items())
    return {
        "name": f"node-{node.id}",
        "type": "Node",
        "costs": [{"name": f"node-{other}", "value": value} for other, value in node.distances.items()],
        "resources": resources,
    }


def _managed(node: NumaNode, kubelet: KubeletSettings, reserved: frozenset[int]) -> Iterator[dict[str, Any]]:
    if kubelet.static_cpus:
        yield _amount(CPU, len(node.cpus), len(set(node.cpus) - reserved))
    if kubelet.static_memory:
        sizes = {MEMORY: node.memory - sum(node.huge_pages.values()), **node.huge_pages}
        for name, size in sizes.items():
            yield _amount(name, max(size, 0), max(size - kubelet.reserved_memory.get((node.id, name), 0), 0))


def _amount(name: str, capacity: int, allocatable: int) -> dict[str, Any]:
    return {"name": name, "capacity": str(capacity), "allocatable": str(allocatable), "available": str(allocatable)}
