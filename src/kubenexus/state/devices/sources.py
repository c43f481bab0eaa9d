"""The objects that the devices of nodes are read from: facts of the Node, ResourceSlices, NodeResourceTopology.

Slices are kept compressed: decoded, those of 5,000 nodes with eight GPUs take 60 MB, as bytes 14, compressed 3. They
are read again only when something about their node changes.
"""

import zlib
from collections.abc import Hashable
from typing import Any, Final, NamedTuple

import msgspec

from kubenexus.api.devices.device import Device, NodeDevices
from kubenexus.api.devices.from_slices import driver_kind
from kubenexus.api.devices.inventory import NO_FACTS, NodeFacts, node_devices
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.api.devices.resource_slice import ResourceSlice, node_names

# Slices of one pool that is read. Drivers of GPUs have a pool for each node. A change of one slice reads the whole pool
# for each of its nodes, so a pool of thousands would take minutes.
MAX_POOL_SLICES: Final = 64
MAX_NODE_SLICES: Final = 512  # of the pools of one node; of more none is read
_MAX_SHARED: Final = 1024
_TEXTS: Final = ("name", "model", "pci_address", "clique")  # that many devices have
_MAX_REMEMBERED: Final = 256  # kinds of machines whose devices are known by their labels

Pool = tuple[str, str]
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(ResourceSlice).decode


class _Slice(NamedTuple):
    pool: Pool
    nodes: frozenset[str]
    encoded: bytes


class DeviceSources:
    """By node: what its devices are read from. The ledger owns it."""

    def __init__(self) -> None:
        self._facts: dict[str, NodeFacts] = {}
        self._slices: dict[str, _Slice] = {}
        self._by_pool: dict[Pool, set[str]] = {}
        self._pools: dict[str, dict[Pool, int]] = {}  # by node: how many slices of each pool name it
        self._topologies: dict[str, NodeResourceTopology] = {}
        self._by_facts: dict[bytes, NodeDevices] = {}
        self._shared: dict[Hashable, Any] = {}

    def set_facts(self, node: str, facts: NodeFacts) -> bool:
        """Records what a Node states about devices. Returns whether that changed."""
        if self._facts.get(node, NO_FACTS) == facts:
            return False
        if facts == NO_FACTS:
            del self._facts[node]
        else:
            self._facts[node] = facts
        return True

    def set_slice(self, name: str, found: ResourceSlice | None) -> set[str]:
        """Records a ResourceSlice, or with None that it is gone. Returns the nodes whose devices are to be read
        again. Slices of drivers that have neither GPUs nor accelerators count as gone."""
        fresh = _reduced(found) if found is not None and driver_kind(found.spec.driver) is not None else None
        old = self._slices.get(name)
        if fresh == old:
            return set()
        concerned = self._nodes_of(old) | self._nodes_of(fresh)
        if old is not None:
            del self._slices[name]
            self._by_pool[old.pool].discard(name)
            if not self._by_pool[old.pool]:
                del self._by_pool[old.pool]
            self._count(old, -1)
        if fresh is not None:
            self._slices[name] = fresh
            self._by_pool.setdefault(fresh.pool, set()).add(name)
            self._count(fresh, +1)
            concerned |= self._nodes_of(fresh)
        return concerned

    def set_topology(self, node: str, fresh: NodeResourceTopology | None) -> bool:
        """Records the NodeResourceTopology of a node, or with None that it is gone. Returns whether that changed."""
        if fresh is not None:  # only what is read of it
            fresh = msgspec.structs.replace(fresh, metadata=type(fresh.metadata)(name=node))
        if self._topologies.get(node) == fresh:
            return False
        if fresh is None:
            del self._topologies[node]
        else:
            self._topologies[node] = fresh
        return True

    def topology(self, node: str) -> NodeResourceTopology | None:
        return self._topologies.get(node)

    def read(self, node: str) -> NodeDevices:
        """Returns the devices of a node."""
        names = [name for pool in self._pools.get(node, ()) for name in self._by_pool[pool] if self._is_read(pool)]
        if len(names) > MAX_NODE_SLICES:
            found = self._read_facts(self._facts.get(node, NO_FACTS))
            problem = f"{len(names)} ResourceSlices for one node; of more than {MAX_NODE_SLICES} none is read"
            return msgspec.structs.replace(found, warnings=(*found.warnings, problem))
        if not names and node not in self._topologies:
            return self._read_facts(self._facts.get(node, NO_FACTS))
        slices = [_decode(zlib.decompress(self._slices[name].encoded)) for name in names]
        found = node_devices(self._facts.get(node, NO_FACTS), slices, self._topologies.get(node), node_name=node)
        return msgspec.structs.replace(found, devices=tuple([self._with_shared_parts(each) for each in found.devices]))

    def _with_shared_parts(self, device: Device) -> Device:
        """Returns the device with parts that equal devices share: the table of sources alone takes 350 bytes."""
        shared = self._shared
        if len(shared) >= _MAX_SHARED:
            shared.clear()
        sources = shared.setdefault(tuple(device.sources.items()), device.sources)
        texts = {field: shared.setdefault(text, text) for field in _TEXTS if (text := getattr(device, field))}
        return msgspec.structs.replace(device, sources=sources, **texts)

    def _read_facts(self, facts: NodeFacts) -> NodeDevices:
        """Returns the devices of a node that only its labels and resources describe. Many nodes have equal ones."""
        key = _encode(facts)
        known = self._by_facts.get(key)
        if known is None:
            if len(self._by_facts) >= _MAX_REMEMBERED:
                self._by_facts.clear()
            known = self._by_facts[key] = node_devices(facts)
        return known

    def _is_read(self, pool: Pool) -> bool:
        return len(self._by_pool[pool]) <= MAX_POOL_SLICES

    def _nodes_of(self, of: _Slice | None) -> set[str]:
        """Returns the nodes of a slice and of the other slices of its pool: one slice completes the pool for all."""
        if of is None:
            return set()
        others = self._by_pool.get(of.pool, set())
        if len(others) > MAX_POOL_SLICES + 1:
            return set(of.nodes)
        return set(of.nodes).union(*(self._slices[name].nodes for name in others))

    def _count(self, of: _Slice, sign: int) -> None:
        for node in of.nodes:
            pools = self._pools.setdefault(node, {})
            pools[of.pool] = pools.get(of.pool, 0) + sign
            if not pools[of.pool]:
                del pools[of.pool]
            if not pools:
                del self._pools[node]


def _reduced(found: ResourceSlice) -> _Slice:
    spec = found.spec
    plain = ResourceSlice(metadata=type(found.metadata)(name=found.metadata.name), spec=spec)
    return _Slice((spec.driver, spec.pool.name), node_names(found), zlib.compress(_encode(plain), 1))
