"""The devices of all nodes, as they were last read from the objects that describe them.

To read the devices of one node takes up to a millisecond. So a change of an object only marks its nodes, and their
devices are read in portions before the next decision.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from kubenexus.api.devices.device import NO_DEVICES, NodeDevices
from kubenexus.api.devices.inventory import NodeFacts
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology, same_devices
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.state.devices.sources import DeviceSources


class DeviceInventory:
    """By node: its devices, also if the node itself is not known yet. The ledger owns it."""

    def __init__(self) -> None:
        self._sources = DeviceSources()
        self._devices: dict[str, NodeDevices] = {}
        # Nodes about which an object changed, in order, and whether their devices are to be read.
        self._unread: dict[str, bool] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}

    def of(self, node: str) -> NodeDevices:
        """Returns the devices of a node as they were last read."""
        return self._devices.get(node, NO_DEVICES)

    @property
    def unread(self) -> int:
        """How many nodes are marked."""
        return len(self._unread)

    def set_facts(self, node: str, facts: NodeFacts) -> None:
        """Records what a Node states about devices."""
        if self._sources.set_facts(node, facts):
            self._mark((node,))

    def set_slice(self, name: str, thing: ResourceSlice | None) -> None:
        """Records a ResourceSlice, or with None that it is gone."""
        self._mark(sorted(self._sources.set_slice(name, thing)))

    def set_topology(self, node: str, thing: NodeResourceTopology | None) -> None:
        """Records the NodeResourceTopology of a node, or with None that it is gone."""
        before = self._sources.topology(node)
        if self._sources.set_topology(node, thing):
            # Reports come every few seconds, and mostly have no more in them than other amounts in use.
            self._mark((node,), devices=before is None or thing is None or not same_devices(before, thing))

    def topology(self, node: str) -> NodeResourceTopology | None:
        """Returns the NodeResourceTopology of a node."""
        return self._sources.topology(node)

    def read(self, most: int | None = None) -> Iterator[tuple[str, NodeDevices]]:
        """Yields marked nodes with their devices, at most so many, and takes their marks away."""
        for node in list(islice(self._unread, most)):
            yield node, self._sources.read(node) if self._unread.pop(node) else self.of(node)

    def replace(self, node: str, devices: NodeDevices) -> bool:
        """Sets the devices of a node. Returns whether they changed."""
        old = self.of(node)
        if devices == old:
            return False
        if devices.warnings != old.warnings:
            self._warnings[node] = devices.warnings
        self._devices[node] = devices
        if devices == NO_DEVICES:
            del self._devices[node]
        return True

    def take_warnings(self) -> dict[str, tuple[str, ...]]:
        """Returns the warnings about devices, by node, that came or changed since the last call."""
        taken, self._warnings = self._warnings, {}
        return taken

    def _mark(self, nodes: Iterable[str], *, devices: bool = True) -> None:
        for node in nodes:
            self._unread[node] = devices or self._unread.get(node, False)
