"""Host ports in use. Sparse: a port is used on few nodes, or by one pod on each."""

from kubenexus.state.footprint import ANY_ADDRESS, Port
from kubenexus.state.undo_log import UndoLog


class HostPortUse:
    """For each port the rows where it is in use, with a count, and for each row its ports: those of one row are found
    without a look at the ports of others. Another scheduler can put two pods with the same port on a node: when one
    leaves, the port must stay in use."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], dict[str, dict[int, int]]] = {}
        self._by_row: dict[int, dict[Port, None]] = {}  # a set with an order

    def charge(self, row: int, ports: tuple[Port, ...], sign: int, undo: UndoLog | None = None) -> None:
        """Takes ports on a row (`sign` +1) or frees them (-1, of a pod that has taken them)."""
        for port in ports:
            self._set(row, port, self._count(row, port) + sign)
        if undo is not None:  # the counts are integers: the opposite restores them, and leaves no empty table
            undo.call(lambda: self.charge(row, ports, -sign))

    def clear(self, row: int) -> None:
        """Frees all ports of a row."""
        for port in list(self._by_row.get(row, ())):
            self._set(row, port, 0)

    def _count(self, row: int, port: Port) -> int:
        addresses = self._rows.get((port.protocol, port.number))
        rows = None if addresses is None else addresses.get(port.address)
        return 0 if rows is None else rows.get(row, 0)

    def _set(self, row: int, port: Port, count: int) -> None:
        key = (port.protocol, port.number)
        addresses = self._rows.setdefault(key, {})
        rows, here = addresses.setdefault(port.address, {}), self._by_row.setdefault(row, {})
        if count > 0:
            rows[row], here[port] = count, None
            return
        rows.pop(row, None)
        here.pop(port, None)
        if not here:
            del self._by_row[row]
        if not rows:
            del addresses[port.address]
        if not addresses:
            del self._rows[key]

    def conflicts(self, port: Port) -> list[dict[int, int]]:
        """Returns the rows on which `port` would conflict, as dicts whose keys are rows."""
        addresses = self._rows.get((port.protocol, port.number))
        if not addresses:
            return []
        if port.address == ANY_ADDRESS:
            return list(addresses.values())
        return [addresses[a] for a in (ANY_ADDRESS, port.address) if a in addresses]

    def on(self, row: int) -> dict[Port, int]:
        """Returns the ports in use on a row, for the audit, the digest and explanations."""
        return {port: self._count(row, port) for port in self._by_row.get(row, ())}
