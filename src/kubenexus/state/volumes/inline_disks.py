"""Inline disks of pods: the rows on which each is mounted, and whether another pod may mount it there."""

from kubenexus.state.volumes.pod_volumes import InlineDisk


class InlineDiskUse:
    """Uses of inline disks. Few pods and few rows have any, so these are tables by disk, as for ports."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], dict[int, dict[InlineDisk, int]]] = {}

    def charge(self, row: int, disk: InlineDisk, sign: int) -> None:
        """Adds a mount of a disk on a row (`sign` +1) or removes it (-1)."""
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
        """Returns the rows where a pod mounts the disk in a way that excludes this one."""
        rows = self._rows.get((disk.kind, disk.name), {})
        return [row for row, here in rows.items() if any(disk.clashes(other) for other in here)]
