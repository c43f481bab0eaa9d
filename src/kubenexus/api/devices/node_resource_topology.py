"""NodeResourceTopology (`topology.node.k8s.io/v1alpha2`): the NUMA zones of a node and their resources.

The object has the name of its node and no `spec`: its fields are beside the metadata.
"""

import re
from typing import Final

from kubenexus.api.core import QuantityText
from kubenexus.api.meta import ApiObject, Int64, ObjectMeta

NUMA_ZONE: Final = "Node"
MAX_ZONES: Final = 256  # of a node, sockets and caches included; one with more tells nothing
_NUMBERED: Final = re.compile(r"(?:[a-z]+-)?([0-9]{1,4})", re.IGNORECASE)


class TopologyAttribute(ApiObject):
    name: str = ""
    value: str = ""


class ZoneCost(ApiObject):
    """The distance to another zone as the firmware publishes it: 10 is local."""

    name: str = ""
    value: Int64 = 0


class ZoneResource(ApiObject):
    name: str = ""
    capacity: QuantityText = "0"
    allocatable: QuantityText = "0"
    available: QuantityText = "0"


class Zone(ApiObject):
    name: str = ""
    type: str = ""
    parent: str = ""
    costs: list[ZoneCost] = []
    attributes: list[TopologyAttribute] = []
    resources: list[ZoneResource] = []

    @property
    def numa(self) -> int:
        """The number of the NUMA node (`node-0` is 0), or -1 if the zone is none."""
        match = _NUMBERED.fullmatch(self.name) if self.type == NUMA_ZONE else None
        return int(match[1]) if match else -1


class NodeResourceTopology(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    topology_policies: list[str] = []
    zones: list[Zone] = []
    attributes: list[TopologyAttribute] = []


def same_devices(one: NodeResourceTopology, other: NodeResourceTopology) -> bool:
    """Returns whether two reports have the same zones with as many devices: the devices of the node are the same by
    both. What is in use of them may differ."""
    if len(one.zones) != len(other.zones) or len(one.zones) > MAX_ZONES:
        return False
    for first, second in zip(one.zones, other.zones, strict=True):
        if first.name != second.name or first.type != second.type or _devices(first) != _devices(second):
            return False
    return True


def _devices(zone: Zone) -> list[tuple[str, QuantityText]]:
    return [(each.name, each.capacity) for each in zone.resources if "/" in each.name]
