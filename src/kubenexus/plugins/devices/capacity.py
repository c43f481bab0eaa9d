"""How many members of a gang get devices on each row."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.devices.request import DeviceRequest, available, requests_of
from kubenexus.state.devices.layout import ISLAND
from kubenexus.state.view import Nodes


class CountsDevices:
    """The Capacity point of plugins that refuse rows for lack of devices. One count covers all their needs."""

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Limits `capacity` to the members that get devices. Each card of a pod without names may spoil one member, or
        all members that would share it."""
        sets = nodes.devices
        for request in requests_of(pod):
            free = available(request, sets)
            if request.is_part:
                members = sets.shared_by_plugins(("members", id(request)), partial(_parts, request, free, nodes))
            elif request.joined:
                members = sets.shared_by_plugins(("members", id(request)), partial(_joined, request, free, nodes))
            else:
                members = (sets.count(free) - sets.unnamed(request.resource)) // request.number
                if sets.sliced.any():
                    members = np.where(sets.sliced, _units(request, free, nodes), members)
                members = np.where(sets.offered(request.resource) == 0, capacity, members)
            np.minimum(capacity, np.maximum(members, 0), out=capacity)

    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        """Returns nothing: NodeResourcesFit counts the numbers. If members of several classes then do not get their
        devices together, the gang planner places them one by one."""
        return {}


def unnamed_cards(request: DeviceRequest, sets: Any) -> Any:
    """Returns how many cards may be held by pods without names; each may be any card."""
    total: Any = 0
    for name in (request.resource,) if request.resource else sets.resources:
        left = sets.unnamed(name)
        total = total + (max(left, 0) if isinstance(left, int) else np.maximum(left, 0))
    return total


def _parts(request: DeviceRequest, free: Any, nodes: Nodes) -> Any:
    """Returns how many parts the cards of each row hold. Of pods with parts of several cards a row takes one at a
    time."""
    unnamed = unnamed_cards(request, nodes.devices)
    if request.number > 1:
        return np.clip((nodes.devices.count(free) - unnamed) // request.number, 0, 1)
    devices, where = nodes.columns.devices, nodes.where
    parts = np.zeros((devices.slots, nodes.width), np.int64)
    for slot in range(devices.slots):
        usable = devices.usable[slot, where]
        if request.share:
            share, memory = np.int64(request.share), request.memory or request.share * usable // WHOLE
        else:
            share, memory = np.maximum(-(-request.memory * WHOLE // np.maximum(usable, 1)), 1), request.memory
        times = devices.share[slot, where] // share
        by_memory = devices.memory[slot, where] // np.maximum(memory, 1)
        times = np.minimum(times, np.where(np.asarray(memory) > 0, by_memory, times))
        parts[slot] = np.where(free >> np.uint64(slot) & np.uint64(1) != 0, times, 0)
    if np.any(unnamed):  # any cards may be the ones that are held: at worst those with most room
        parts = np.sort(parts, axis=0)[::-1] * (np.arange(devices.slots)[:, None] >= unnamed)
    return parts.sum(axis=0)


def _joined(request: DeviceRequest, free: Any, nodes: Nodes) -> Any:
    """Returns how many members get their devices in one island each."""
    sets = nodes.devices
    together = sets.in_groups(free, ISLAND) // request.number
    members = together.sum(axis=0) - np.maximum(sets.unnamed_devices(request.resource), 0)
    return np.minimum(members, _by_number(request, nodes)) if sets.sliced.any() else members


def _by_number(request: DeviceRequest, nodes: Nodes) -> Any:
    """Returns how many members the units that are left hold, on whichever devices."""
    sets = nodes.devices
    return (sets.free_units(request.resource) - sets.unnamed(request.resource)) // request.number


def _units(request: DeviceRequest, free: Any, nodes: Nodes) -> Any:
    """Returns how many members the units of time-sliced cards hold. Any unit will do, unless the pod wants certain
    cards; of pods that want several such cards each member then counts for cards of its own."""
    sets, devices, where = nodes.devices, nodes.columns.devices, nodes.where
    by_number = _by_number(request, nodes)
    if not (request.card_memory or request.words):
        return by_number
    if request.number > 1:
        return np.minimum(by_number, sets.count(free) // request.number)
    cards = sets.count(sets.offered(request.resource) & sets.healthy)
    unit = np.maximum(WHOLE * cards // np.maximum(sets.units(request.resource), 1), 1)
    units = np.zeros(nodes.width, np.int64)
    for slot in range(devices.slots):
        units += np.where(free >> np.uint64(slot) & np.uint64(1) != 0, devices.share[slot, where] // unit, 0)
    return np.minimum(by_number, units)
