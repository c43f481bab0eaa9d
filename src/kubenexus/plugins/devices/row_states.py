"""Results of device plugins for single rows, kept by the state of the row's devices.

What a plugin returns for a number of devices, or a part of one, follows from which are free, or how much of each, and
how many pods hold without names. Machines of one kind pass through few such states.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kubenexus.api.keys import gpu
from kubenexus.plugins.devices.request import DeviceRequest
from kubenexus.state.devices.columns import NO_ROW
from kubenexus.state.resources import NOTHING
from kubenexus.state.view import OneNode

_MAX_STATES: Final = 8192
_PRISTINE: Final = gpu.PRISTINE.key

T = TypeVar("T")


class _Known(NamedTuple):
    """A result. `held` is what it is found by, so that no other object gets the identity of it."""

    result: Any
    held: tuple[object, object]


class StateResults(Generic[T]):
    """A bounded memory. It forgets all at once when it is full: it is filled again from the states that occur now."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Known] = {}

    def get(self, what: Hashable, request: DeviceRequest, node: OneNode, compute: Callable[..., T], *more: Any) -> T:
        """Returns `compute(node, *more)`, or what it returned for a row in the same state. For one `what` the result
        must not depend on anything but the request and the devices."""
        columns, row, resource = node.columns, node.row, request.resource
        devices, index = columns.devices, columns.resources.index
        hardware = devices.rows.get(row, NO_ROW).hardware
        pristine = node.labels.get(_PRISTINE) if columns.labels.rows_with(_PRISTINE) else None
        key: tuple[Hashable, ...]
        # Read from the columns: a `OneNodeDevices` takes longer to make than all of this.
        if request.is_part or hardware.sliced:
            key = (what, id(hardware), id(request), pristine, devices.left(row))
            for name in (resource,) if resource else devices.attributed:
                r, named = index.get(name, NOTHING), devices.attributed.get(name)
                key += (node.uses[r], node.allocs[r], 0 if named is None else named.item(row))
        else:
            r, named = index.get(resource, NOTHING), devices.attributed.get(resource)
            held = 0 if named is None else named.item(row)
            free = devices.free.item(row)
            key = (what, id(hardware), id(request), pristine, free, node.uses[r], node.allocs[r], held)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_STATES:
                self._known.clear()
            known = self._known[key] = _Known(compute(node, *more), (hardware, request))
        result: T = known.result
        return result
