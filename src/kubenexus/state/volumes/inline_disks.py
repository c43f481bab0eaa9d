"""Disks that stand in pods themselves: on which rows each is mounted, and by whom it may be mounted once more."""

from kubenexus.state.volumes.pod_volumes import InlineDisk


class InlineDiskUse:
    """Few pods mount such disks, and few rows have any: tables by disk, as for ports."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], dict[int, dict[InlineDisk, int]]] = {}

    def charge(self, row: int, disk: InlineDisk, sign: int) -> None:
        rows = self._rows.setdefault((disk.kind, disk.name), {})
        here = rows.setdefault(row, {})
        here[disk] = here.get(disk, 0) + sign
        if not here[disk]:
            del here[disk]
        if not here:
            del rows[row]
        if not rows:
            del self._rows[disk.kind, disk.name]

    def clashing(self, disk: InlineDisk) -> list[int]:
        """The rows where a pod mounts the disk in a way that does not bear another one."""
        rows = self._rows.get((disk.kind, disk.name), {})
        return [row for row, here in rows.items() if any(disk.clashes(other) for other in here)]
