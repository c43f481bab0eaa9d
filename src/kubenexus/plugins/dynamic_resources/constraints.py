"""Constraints between the devices of a claim: equal or different values of an attribute.

A constraint that a device breaks stays broken when others are added, so the search gives up such a device at once.
"""

from kubenexus.plugins.dynamic_resources.claim_requests import CompiledConstraint, CompiledRequest
from kubenexus.state.claims.device import PoolDevice, Value

COMPARED = ("s", "i", "b", "v")


class ConstraintState:
    """The values of the devices that were added so far, newest last."""

    __slots__ = ("_values", "constraint")

    def __init__(self, constraint: CompiledConstraint) -> None:
        self.constraint = constraint
        self._values: list[Value] = []

    def add(self, request: CompiledRequest, device: PoolDevice) -> bool:
        """Adds a device, if the constraint allows it."""
        if not self.constraint.concerns(request):
            return True
        value = device.attribute(self.constraint.domain, self.constraint.name)
        if value is None or (self._values and not self._allows(value)):
            return False
        self._values.append(value)
        return True

    def remove(self, request: CompiledRequest) -> None:
        """Removes the device that was added last, of this request."""
        if self.constraint.concerns(request):
            self._values.pop()

    def _allows(self, value: Value) -> bool:
        if value[0] not in COMPARED:  # lists are not compared
            return False
        return value not in self._values if self.constraint.distinct else value == self._values[0]
