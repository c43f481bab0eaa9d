"""Compares what a row holds with what it should hold: the node's allocatable amounts and the sum of its pods.

The ledger changes a counter by adding or subtracting, so a counter that is wrong once stays wrong. This module counts a
row from zero, with arithmetic of its own: it uses neither the ledger's steps nor its cached footprints. It writes
nothing and keeps no state.
"""

from collections import Counter as Counts
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from kubenexus.api.devices.device import NodeDevices
from kubenexus.api.devices.device_share import WHOLE, DeviceShare
from kubenexus.api.resource_names import Amounts
from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.state.devices.columns import unit_share, usable_memory
from kubenexus.state.footprint import Port
from kubenexus.state.nodes import NodeColumns, tie_break_of
from kubenexus.state.pod_queries import PodQuery
from kubenexus.state.pods import PodRecord
from kubenexus.state.resources import CPU, ENDLESS, MEMORY, NONZERO, PODS, USED

# Pods, amounts and ports on a row that is audited: 5 ms. A usual node has hundreds; anyone who may name a node in a pod
# can put a million ports on one, and a step would take a second for each such node.
MAX_AUDITED = 5_000


class Miscount(NamedTuple):
    """A counter with a wrong value on `node`."""

    node: str
    counter: str
    held: int
    recounted: int

    def __str__(self) -> str:
        return f"{self.counter}: held {self.held}, recounted {self.recounted}"


class RowAccount(NamedTuple):
    """All counters of a row, sums not capped. Lists are indexed by resource, or by device slot."""

    offered: list[int]
    used: list[int]
    endless: list[int]
    nonzero: list[int]
    ports: dict[Port, int]
    share: list[int]
    memory: list[int]
    free: int  # the set of devices that can be taken
    attributed: dict[str, int]
    draw: int


def miscounts(nodes: NodeColumns, row: int, offers: Amounts, pods: Collection[PodRecord]) -> list[Miscount]:
    """Returns the wrong counters of a row, given its node's allocatable amounts and the pods that count there. A row
    with more than MAX_AUDITED is not audited."""
    if sum([1 + len(pod.footprint.amounts) + len(pod.footprint.ports) for pod in pods]) > MAX_AUDITED:
        return []
    held, right = held_account(nodes, row), recount_row(nodes, row, offers, pods)
    if held == right:
        return []
    ours, theirs = _named(held, nodes), _named(right, nodes)
    found = [(counter, ours.get(counter, 0), theirs.get(counter, 0)) for counter in dict.fromkeys((*ours, *theirs))]
    return [Miscount(nodes.names[row], *three) for three in found if three[1] != three[2]]


def query_miscounts(nodes: NodeColumns, question: PodQuery) -> list[Miscount]:
    """Returns the rows on which the cached answer of a pod query is wrong. Matches all pods against the query."""
    asked = " and ".join(f"pods with {term.selector}" if term.selector.text else "pods" for term in question)
    differences = nodes.pods.differences(question)
    return [Miscount(nodes.names[row] if row >= 0 else "", asked, *pair) for row, *pair in differences]


def held_account(nodes: NodeColumns, row: int) -> RowAccount:
    """Returns the counters that the columns hold for a row."""
    offered = nodes.resources.alloc[:, row].tolist()
    used, nonzero, endless = [nodes.resources.exact_sums(table, row) for table in (USED, NONZERO, ENDLESS)]
    devices, slots = nodes.devices, range(len(nodes.devices.of_row(row).node.devices))
    share, memory = [devices.share.item(s, row) for s in slots], [devices.memory.item(s, row) for s in slots]
    named = {resource: units.item(row) for resource, units in devices.attributed.items() if units.item(row)}
    ports, draw = nodes.ports.on(row), nodes.tie_break.item(row)
    return RowAccount(offered, used, endless, nonzero, ports, share, memory, devices.free.item(row), named, draw)


def recount_row(nodes: NodeColumns, row: int, offers: Amounts, pods: Collection[PodRecord]) -> RowAccount:
    """Returns the counters of a row, computed from the node's allocatable amounts and its pods."""
    index, size = nodes.resources.index, nodes.resources.by_row.shape[2]
    offered = [0] * size
    for name, amount in offers:
        if name in index:
            offered[index[name]] = min(amount, AMOUNT_CAP - 1)
    used, nonzero = _taken(index, size, pods)
    endless, _ = _taken(index, size, [record for record in pods if record.endless])
    ports = Counts(port for record in pods for port in record.footprint.ports)
    here = nodes.devices.of_row(row).node
    share, memory, attributed = _left(here, pods)
    free = sum(1 << s for s, d in enumerate(here.devices) if d.healthy and share[s] >= unit_share(d))
    draw = tie_break_of(nodes.name_hash.item(row), len(pods))
    return RowAccount(offered, used, endless, nonzero, ports, share, memory, free, attributed, draw)


def _taken(index: dict[str, int], size: int, pods: Collection[PodRecord]) -> tuple[list[int], list[int]]:
    used, nonzero = [0] * size, [0] * size
    for footprint in [record.footprint for record in pods]:
        nonzero[CPU] += footprint.nonzero_cpu
        nonzero[MEMORY] += footprint.nonzero_memory
        for name, amount in footprint.amounts:
            r = index.get(name)
            if r is not None:
                used[r] += amount
                if r > MEMORY:
                    nonzero[r] += amount
    used[PODS] += len(pods)
    return used, nonzero


def _left(node: NodeDevices, pods: Collection[PodRecord]) -> tuple[list[int], list[int], dict[str, int]]:
    """Returns what pods leave of each device, and the units of each resource that they hold by name."""
    slots = {device.name: slot for slot, device in enumerate(node.devices)}
    share = [WHOLE] * len(slots)
    memory = [usable_memory(device) for device in node.devices]
    attributed = Counts[str]()
    for record in pods:
        requested = dict(record.footprint.amounts)
        for slot, take in _counted(record.device_shares, slots, node, requested):
            share[slot] -= take.share
            memory[slot] -= take.memory
            if node.devices[slot].resource in requested:
                attributed[node.devices[slot].resource] += 1
    return share, memory, dict(attributed)


def _counted(
    takes: Iterable[DeviceShare], slots: dict[str, int], node: NodeDevices, requested: dict[str, int]
) -> Iterator[tuple[int, DeviceShare]]:
    """Yields what a pod holds: of each resource as many devices as it requests, or one where devices are shared."""
    seen = Counts[str]()
    for take in takes:
        slot = slots.get(take.device)
        if slot is not None:
            resource = node.devices[slot].resource
            seen[resource] += 1
            if not resource or seen[resource] <= requested.get(resource, int(node.shared)):
                yield slot, take


def _named(account: RowAccount, nodes: NodeColumns) -> dict[str, int]:
    """Returns the counters by the names under which the log shows them."""
    named = {"draw": account.draw}
    for resource, r in nodes.resources.index.items():
        named[f"{resource} offered"] = account.offered[r]
        named[f"{resource} used"] = account.used[r]
        named[f"{resource} used without an end"] = account.endless[r]
        named[f"{resource} used, with defaults"] = account.nonzero[r]
    for port, count in account.ports.items():
        named[f"port {port.address}:{port.number}/{port.protocol}"] = count
    for slot, share in enumerate(account.share):
        named[f"device {slot} share left"] = share
        named[f"device {slot} memory left"] = account.memory[slot]
    named["free devices"] = account.free
    for resource, units in account.attributed.items():
        named[f"{resource} held by name"] = units
    return named
