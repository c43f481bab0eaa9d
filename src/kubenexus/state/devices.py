"""Devices as columns, slot-major: `share[s, n]` is the free share of device s of node n, in thousandths.

A rule compares one slot of all nodes at a time. A node-major layout is over twenty times slower.
"""

import msgspec
import numpy as np

from kubenexus.base.arrays import grow
from kubenexus.state.undo_log import UndoLog

WHOLE = 1000


class Device(msgspec.Struct, frozen=True, gc=False):
    """A device of a node, as discovery reports it. `vram` is in bytes; `numa`, `switch`, `clique` are -1 if unknown."""

    name: str
    model: str = ""
    vram: int = 0
    numa: int = -1
    switch: int = -1
    clique: int = -1
    healthy: bool = True


class DeviceShare(msgspec.Struct, frozen=True, gc=False):
    """The part of a device that is assigned to a pod: thousandths of the device, and bytes of its memory."""

    slot: int
    share: int = WHOLE
    vram: int = 0


class DeviceColumns:
    """Device columns. Placements change the free share and the free memory; the other columns describe the hardware."""

    def __init__(self, capacity: int) -> None:
        self.share = np.zeros((0, capacity), np.int64)
        self.vram = np.zeros((0, capacity), np.int64)
        self.numa = np.zeros((0, capacity), np.int64)
        self.switch = np.zeros((0, capacity), np.int64)
        self.clique = np.zeros((0, capacity), np.int64)
        self.healthy = np.zeros((0, capacity), np.int64)
        self._of_row: dict[int, tuple[Device, ...]] = {}

    @property
    def slots(self) -> int:
        return len(self.share)

    def grow(self, capacity: int) -> None:
        for name in _COLUMNS:
            setattr(self, name, grow(getattr(self, name), capacity))

    def of_row(self, row: int) -> tuple[Device, ...]:
        return self._of_row.get(row, ())

    def set(self, row: int, devices: tuple[Device, ...]) -> None:
        """Replaces the devices of a node, all free. The ledger then counts the pods that hold some of them."""
        if len(devices) > self.slots:
            for name in _COLUMNS:
                setattr(self, name, grow(getattr(self, name), len(devices), axis=0))
        if devices or row in self._of_row:
            self.clear(row)
        if devices:
            self._of_row[row] = devices
        for slot, device in enumerate(devices):
            self.numa[slot, row], self.switch[slot, row] = device.numa, device.switch
            self.clique[slot, row], self.healthy[slot, row] = device.clique, device.healthy
        self.clear_use(row)

    def clear(self, row: int) -> None:
        self._of_row.pop(row, None)
        for name in _COLUMNS:
            getattr(self, name)[:, row] = 0

    def clear_use(self, row: int) -> None:
        """Makes all devices of a row free."""
        for slot, device in enumerate(self.of_row(row)):
            self.share[slot, row], self.vram[slot, row] = WHOLE, device.vram

    def charge(self, row: int, takes: tuple[DeviceShare, ...], sign: int, undo: UndoLog | None = None) -> None:
        """Takes parts of devices of a row (`sign` +1) or frees them (-1)."""
        for take in takes:
            if take.slot >= len(self.of_row(row)):
                continue  # the device is gone while its pod still runs: it is counted when the device is back
            if undo is not None:
                undo.cell(self.share, (take.slot, row))
                undo.cell(self.vram, (take.slot, row))
            self.share[take.slot, row] -= sign * take.share
            self.vram[take.slot, row] -= sign * take.vram


_COLUMNS = ("share", "vram", "numa", "switch", "clique", "healthy")
