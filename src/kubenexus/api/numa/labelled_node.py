"""The NUMA nodes of a machine by the labels and annotations of its Node, where it has no NodeResourceTopology.

They tell what there is, not what is in use, and nothing about the kubelet. So nothing is predicted from them about an
admission: they count for the NUMA policy of a pod alone.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kubenexus.api.devices.device import NodeDevices
from kubenexus.api.devices.node_resource_topology import NUMA_ZONE, NodeResourceTopology, Zone, ZoneCost, ZoneResource
from kubenexus.api.keys import numa
from kubenexus.api.keys.entry import KeyEntry
from kubenexus.api.keys.reading import read_indexed_key, read_key
from kubenexus.api.numa.machine import MAX_NUMA_NODES
from kubenexus.api.numa.reported_node import NO_BANDWIDTHS

PREFIX: Final = "numa.kubenexus.io/node-"
_BANDWIDTH: Final = "-bandwidth"
MAX_KEYS: Final = 256  # labels and annotations of a node about its NUMA nodes; a node with more tells nothing
NOTHING: Final = NodeResourceTopology()


def labelled_topology(labels: Mapping[str, str], annotations: Mapping[str, str]) -> NodeResourceTopology:
    """Returns the NUMA nodes with CPUs and memory that a Node names; no zones if it names none, or not all of them."""
    if not any([key.startswith(PREFIX) for key in (*labels, *annotations)]):  # noqa: C419
        return NOTHING
    ours = [{key: text for key, text in texts.items() if key.startswith(PREFIX)} for texts in (labels, annotations)]
    if len(ours[0]) + len(ours[1]) > MAX_KEYS:
        return NOTHING
    number = read_key(numa.NODE_COUNT, labels, annotations).value
    cpus = {**_values(numa.CPU_COUNT, *ours), **{index: len(ids) for index, ids in _values(numa.CPUS, *ours).items()}}
    memory = _values(numa.MEMORY, *ours)
    if number is None or number > MAX_NUMA_NODES or any((zone,) not in cpus for zone in range(number)):
        return NOTHING
    distances = _values(numa.DISTANCE, *ours)
    return NodeResourceTopology(
        zones=[
            Zone(
                name=f"node-{zone}",
                type=NUMA_ZONE,
                costs=[
                    ZoneCost(name=f"node-{other}", value=distances[zone, other])
                    for other in range(number)
                    if (zone, other) in distances
                ],
                resources=[
                    _resource("cpu", cpus[zone,]),
                    *([_resource("memory", int(memory[zone,]))] if (zone,) in memory else ()),
                ],
            )
            for zone in range(number)
        ]
    )


def labelled_bandwidths(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Mapping[int, int]:
    """Returns the memory bandwidths in MB/s that a Node names, by the number of the NUMA node. No
    NodeResourceTopology has them, so they count beside one as well."""
    ours = [
        {key: text for key, text in texts.items() if key.startswith(PREFIX) and key.endswith(_BANDWIDTH)}
        for texts in (labels, annotations)
    ]
    if not any(ours) or len(ours[0]) + len(ours[1]) > MAX_KEYS:
        return NO_BANDWIDTHS
    return {index[0]: value for index, value in _values(numa.BANDWIDTH, *ours).items() if value}


def with_devices(topology: NodeResourceTopology, devices: NodeDevices) -> NodeResourceTopology:
    """Returns the same NUMA nodes with the devices whose NUMA node is known, by the resource that offers them."""
    found = Counter((each.numa, each.resource) for each in devices.devices if each.resource and each.healthy)
    zones = []
    for zone in topology.zones:
        here = sorted((resource, count) for (number, resource), count in found.items() if number == zone.numa)
        resources = [*zone.resources, *(_resource(resource, count) for resource, count in here)]
        zones.append(Zone(name=zone.name, type=zone.type, costs=zone.costs, resources=resources))
    return NodeResourceTopology(zones=zones)


def _values(entry: KeyEntry[Any], labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[Any, Any]:
    """Returns what can be read, by the numbers in the key."""
    readings = read_indexed_key(entry, labels, annotations)
    return {index: reading.value for index, reading in readings.items() if reading.is_set}


def _resource(name: str, number: int) -> ZoneResource:
    return ZoneResource(name=name, capacity=str(number), allocatable=str(number), available=str(number))
