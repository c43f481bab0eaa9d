"""Host ports in use. Sparse: a port is used on few nodes, or by one pod on each."""

from kubenexus.state.footprint import ANY_ADDRESS, Port
from kubenexus.state.undo_log import UndoLog


class HostPortUse:
    """For each port the rows where it is in use, with a count. Another scheduler can put two pods with the same port on
    a node: when one leaves, the port must stay in use."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], dict[str, dict[int, int]]] = {}

    def charge(self, row: int, ports: tuple[Port, ...], sign: int, undo: UndoLog | None = None) -> None:
        """Takes ports on a row (`sign` +1) or frees them (-1)."""
        for port in ports:
            rows = self._rows.setdefault((port.protocol, port.number), {}).setdefault(port.address, {})
            if undo is not None:
                undo.entry(rows, row)
            count = rows.get(row, 0) + sign
            if count > 0:
                rows[row] = count
            else:
                rows.pop(row, None)
            if undo is None and not rows:
                self._drop(port)

    def clear(self, row: int) -> None:
        for port in self.on(row):
            self._rows[port.protocol, port.number][port.address].pop(row, None)
            if not self._rows[port.protocol, port.number][port.address]:
                self._drop(port)

    def _drop(self, port: Port) -> None:
        addresses = self._rows[port.protocol, port.number]
        del addresses[port.address]
        if not addresses:
            del self._rows[port.protocol, port.number]

    def conflicts(self, port: Port) -> list[dict[int, int]]:
        """Returns the rows on which `port` would conflict, as dicts whose keys are rows."""
        addresses = self._rows.get((port.protocol, port.number))
        if not addresses:
            return []
        if port.address == ANY_ADDRESS:
            return list(addresses.values())
        return [addresses[a] for a in (ANY_ADDRESS, port.address) if a in addresses]

    def on(self, row: int) -> dict[Port, int]:
        """Returns the ports in use on a row, for the digest and for explanations."""
        return {
            Port(protocol, number, address): rows[row]
            for (protocol, number), addresses in self._rows.items()
            for address, rows in addresses.items()
            if row in rows
        }
