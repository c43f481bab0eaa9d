"""What a pod needs of devices and which nodes come closest; for a pod that is placed, its cards."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.api.devices.device import UNKNOWN
from kubenexus.api.devices.device_share import WHOLE, DeviceShare
from kubenexus.base.arrays import BoolColumn, any_true
from kubenexus.cycle.class_table import ClassTable
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.framework.verdict import Code
from kubenexus.plugins.devices.capacity import unnamed_cards
from kubenexus.plugins.devices.need_text import device_noun, memory_text, need_text
from kubenexus.plugins.devices.pick import slots_of
from kubenexus.plugins.devices.request import (
    FIT,
    TOPOLOGY,
    VRAM,
    DeviceRequest,
    available,
    requests_of,
    suitable,
)
from kubenexus.state.devices.layout import ISLAND
from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

MAX_NODES = 5  # nodes that the section has
_LESS = 1 << 20  # than any order of a row with devices
_COUNTING = frozenset((FIT, VRAM, TOPOLOGY, "NodeResourcesFit"))  # plugins that refuse nodes for what they lack


class NodeOffer(msgspec.Struct, frozen=True, gc=False):
    """What one node has for the pod, as a sentence. `enough`: its devices would do, so something else is missing.
    `refused`: why the node does not take the pod, apart from devices; "" for a node that would."""

    node: str
    text: str
    enough: bool = False
    refused: str = ""


class DeviceSection(msgspec.Struct, frozen=True, gc=False):
    """`need` is what the pod needs. `nearest` are the nodes whose devices come closest, at most `MAX_NODES`. Nodes that
    do not take the pod for another reason are only among them if all with such devices do not."""

    need: str
    nearest: tuple[NodeOffer, ...] = ()


def device_section(table: ClassTable, ledger: Ledger, *, placed: bool) -> DeviceSection | None:
    """Returns the section; None for a pod that needs no devices. A pod that is placed needs no nearest nodes. `table`
    is that of the pod's class."""
    requests = requests_of(table.pod)
    if not requests:
        return None
    if placed:
        return DeviceSection(need_text(requests))
    elsewhere = [column for column in table.filters if column.bits is not None and column.plugin.name not in _COUNTING]
    refused = np.zeros(ledger.nodes.size, np.bool_)
    for column in elsewhere:
        refused |= _refuses(column)
    rows = _nearest_rows(requests, ledger.nodes, refused)
    offers = tuple(_offer(requests, ledger.nodes, row, _reason(elsewhere, row)) for row in rows)
    return DeviceSection(need_text(requests), offers)


def _refuses(column: FilterColumn) -> BoolColumn:
    """Returns the rows that a plugin refuses for a reason that no pod's end would change."""
    lasting = sum(1 << i for i, reason in enumerate(column.reasons.reasons) if reason.code is Code.UNRESOLVABLE)
    widest = int(np.iinfo(column.bits.dtype).max)  # bits above that are those of reasons against no row
    refused: BoolColumn = column.bits & (lasting & widest) != 0
    return refused


def _reason(columns: list[FilterColumn], row: int) -> str:
    """Returns the first such reason against a row, "" if there is none."""
    reasons = (reason for column in columns for reason in column.reasons.read(column.at(row)))
    return next((reason.text for reason in reasons if reason.code is Code.UNRESOLVABLE), "")


def _nearest_rows(requests: tuple[DeviceRequest, ...], columns: NodeColumns, refused: BoolColumn) -> list[int]:
    """Returns the rows that lack least of the request that they lack most of, of those that have such devices; those
    that are `refused` only if there are no others."""
    nodes = Nodes(columns)
    lacking = np.full(nodes.width, -_LESS, np.int64)
    there: BoolColumn = columns.alive[: columns.size].copy()
    for request in requests:
        sets = nodes.devices
        short = request.number - _usable(request, sets)
        np.maximum(lacking, short + ~sets.shared if request.is_part else short, out=lacking)
        there &= sets.count(sets.offered(request.resource)) > 0
    rows = np.flatnonzero(there & ~refused if any_true(there & ~refused) else there)
    order = np.argsort(lacking[rows], kind="stable")[:MAX_NODES]
    return [int(row) for row in rows[order]]


def _usable(request: DeviceRequest, sets: Any) -> Any:
    """Returns how many devices of each row could go to one pod now; pods without names may hold any of them."""
    free = available(request, sets)
    if request.joined:
        counts = sets.in_groups(free, ISLAND)
        most = max(counts, default=0) if isinstance(counts, list) else counts.max(axis=0, initial=0)
        return most - unnamed_cards(request, sets)
    return sets.count(free) - unnamed_cards(request, sets)


def _offer(requests: tuple[DeviceRequest, ...], columns: NodeColumns, row: int, refused: str) -> NodeOffer:
    sets = OneNode(columns, row).devices
    enough = all(_usable(request, sets) >= request.number for request in requests)
    texts = [_offer_text(request, sets, columns, row) for request in requests]
    return NodeOffer(columns.names[row], "; ".join(texts), enough, refused)


def _offer_text(request: DeviceRequest, sets: Any, columns: NodeColumns, row: int) -> str:
    """Returns `8 GPUs, 5 free, joined 3 + 2`."""
    offered, could, free = sets.offered(request.resource), suitable(request, sets), available(request, sets)
    count, unnamed = offered.bit_count(), unnamed_cards(request, sets)
    noun = device_noun(request)
    parts = [f"{count} {noun}{'s' if noun == 'GPU' and count != 1 else ''}"]
    unhealthy = (offered & ~sets.healthy).bit_count()
    if unhealthy:
        parts.append(f"{unhealthy} unhealthy")
    if not could:
        return ", ".join([*parts, "none suitable"])
    if could.bit_count() < count - unhealthy:
        parts.append(f"{could.bit_count()} suitable")
    if request.is_part:
        parts.append(_parts_text(could, columns, row) if sets.shared else "not shared")
    else:
        parts.append(f"{max(0, free.bit_count() - unnamed)} free")
    if request.joined:
        groups = sorted((group for group in sets.in_groups(free, ISLAND) if group), reverse=True)
        most = "joined at most" if unnamed else "joined"
        parts.append(f"{most} {' + '.join(map(str, groups))}" if groups else "none joined")
    if unnamed:
        parts.append(f"{unnamed} in use on cards not known")
    return ", ".join(parts)


def _parts_text(could: int, columns: NodeColumns, row: int) -> str:
    """Returns what is free of the card with most left."""
    devices = columns.devices
    best = max(slots_of(could), key=lambda slot: (devices.share.item(slot, row), devices.memory.item(slot, row)))
    share, memory = max(0, devices.share.item(best, row)), max(0, devices.memory.item(best, row))
    known = f" and {memory_text(memory)}" if devices.usable.item(best, row) else ""
    return f"at most {share * 100 / WHOLE:g}%{known} of one free"


def cards_text(node: str, shares: tuple[DeviceShare, ...], ledger: Ledger) -> str:
    """Returns `gpu-0, gpu-1 (island 0, nvswitch)`, with parts as `gpu-3 50% 20Gi`."""
    devices = {device.name: device for device in ledger.devices_of(node).devices}
    names = ", ".join(_share_text(each) for each in shares)
    known = [devices[each.device] for each in shares if each.device in devices]
    islands = {(device.island, device.link) for device in known}
    if len(known) < 2 or len(islands) != 1 or known[0].island == UNKNOWN:
        return names
    return f"{names} (island {known[0].island}{f', {known[0].link}' if known[0].link else ''})"


def _share_text(share: DeviceShare) -> str:
    if share.share == WHOLE:
        return share.device
    return f"{share.device} {share.share / 10:g}%" + (f" {memory_text(share.memory)}" if share.memory else "")


def is_plan(node: str, shares: tuple[DeviceShare, ...], ledger: Ledger) -> bool:
    """Returns whether the kubelet's device plugin picks the cards, so that the names are only a plan."""
    devices = {device.name: device for device in ledger.devices_of(node).devices}
    return any(each.share == WHOLE and each.device in devices and devices[each.device].resource for each in shares)


def render_section(section: DeviceSection | None) -> list[str]:
    """Returns the lines for a pod that waits."""
    if section is None:
        return []
    offers = [_offer_line(offer) for offer in section.nearest]
    return [f"NEEDS    {section.need}", *(f"DEVICES  {each}" for each in offers or ["no node has any of them"])]


def _offer_line(offer: NodeOffer) -> str:
    enough = "; these would do" if offer.enough else ""
    return f"{offer.node}: {offer.text}{enough}{f'; refused: {offer.refused}' if offer.refused else ''}"
