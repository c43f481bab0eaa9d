"""Results of device plugins for single rows, kept by the state of the row's devices.

What a plugin returns for a number of devices, or a part of one, follows from which are free, or how much of each, and
how many pods hold without names. Machines of one kind pass through few such states.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kubenexus.api.keys import gpu
from kubenexus.plugins.devices.request import DeviceRequest
from kubenexus.state.view import OneNode

_MAX_STATES: Final = 8192

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
        hardware, state = node.device_state(request.resource, whole=not request.is_part)
        labels = node.columns.labels
        pristine = node.labels.get(gpu.PRISTINE.key) if labels.rows_with(gpu.PRISTINE.key) else None
        key = (what, id(hardware), id(request), state, pristine)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_STATES:
                self._known.clear()
            known = self._known[key] = _Known(compute(node, *more), (hardware, request))
        result: T = known.result
        return result
