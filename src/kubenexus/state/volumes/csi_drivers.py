"""Volumes attached to nodes, by CSI driver: their number, the limit, and whether the driver is installed."""

from typing import Any

import numpy as np

from kubenexus.base.arrays import AMOUNT_CAP, BoolColumn, IntColumn, grow
from kubenexus.state.volumes.csi_translation import AttachedVolume
from kubenexus.state.volumes.records import NodeRecord

Rows = dict[int, int]


class CsiDriverUse:
    """`count[n]` is the number of distinct volumes on row n, used by pods or attached. `limit[n]` is the maximum,
    AMOUNT_CAP if the driver has none. `installed[n]` is whether the driver runs there."""

    __slots__ = ("count", "installed", "limit")

    def __init__(self, capacity: int) -> None:
        self.count: IntColumn = np.zeros(capacity, np.int64)
        self.limit: IntColumn = np.full(capacity, AMOUNT_CAP, np.int64)
        self.installed: BoolColumn = np.zeros(capacity, np.bool_)


class CsiDriverColumns:
    """`mounted` holds by volume and row how many pods use it. `attached` holds by volume and row how many
    VolumeAttachments it has, those about to be detached included. Counts follow from the two."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._drivers: dict[str, CsiDriverUse] = {}
        self._migrated: dict[str, BoolColumn] = {}
        self.described: BoolColumn = np.zeros(capacity, np.bool_)  # rows that have a CSINode
        self.mounted: dict[AttachedVolume, Rows] = {}
        self.attached: dict[AttachedVolume, Rows] = {}

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        self.described = grow(self.described, capacity)
        self._migrated = {plugin: grow(column, capacity) for plugin, column in self._migrated.items()}
        for driver in self._drivers.values():
            driver.count, driver.limit = grow(driver.count, capacity), grow(driver.limit, capacity, AMOUNT_CAP)
            driver.installed = grow(driver.installed, capacity)

    def of(self, name: str) -> CsiDriverUse:
        """Returns a driver's columns, and creates them if there are none."""
        driver = self._drivers.get(name)
        if driver is None:
            driver = self._drivers[name] = CsiDriverUse(self._capacity)
        return driver

    def migrated(self, plugin: str) -> BoolColumn:
        """Returns the rows on which an in-tree plugin is migrated to its CSI driver."""
        column = self._migrated.get(plugin)
        if column is None:
            column = self._migrated[plugin] = np.zeros(self._capacity, np.bool_)
        return column

    def describe(self, row: int, node: NodeRecord | None) -> None:
        """Sets the drivers of a row from its CSINode; None: the node has none."""
        for driver in self._drivers.values():
            driver.limit[row], driver.installed[row] = AMOUNT_CAP, False
        for column in self._migrated.values():
            column[row] = False
        limits = node.limits if node is not None else ()
        for name, limit in limits:
            driver = self.of(name)
            driver.limit[row], driver.installed[row] = AMOUNT_CAP if limit is None else limit, True
        for plugin in node.migrated if node is not None else ():
            self.migrated(plugin)[row] = True
        self.described[row] = node is not None

    def mount(self, row: int, attachment: AttachedVolume, pods: int) -> None:
        """Adds `pods` users of a volume on a row."""
        self._move(self.mounted, self.attached, row, attachment, pods)

    def attach(self, row: int, attachment: AttachedVolume, times: int) -> None:
        """Adds a VolumeAttachment on a row (+1) or removes one (-1)."""
        self._move(self.attached, self.mounted, row, attachment, times)

    def _move(
        self, ours: dict[AttachedVolume, Rows], theirs: dict[AttachedVolume, Rows], row: int, *moved: Any
    ) -> None:
        """Changes one of the two tables. A volume counts once on a row, mounted or attached."""
        attachment, delta = moved
        rows = ours.setdefault(attachment, {})
        before = rows.get(row, 0)
        rows[row] = before + delta
        if not rows[row]:
            del rows[row]
            if not rows:
                del ours[attachment]
        if bool(before) != bool(before + delta) and row not in theirs.get(attachment, ()):
            self.of(attachment.driver).count[row] += 1 if not before else -1
