"""`ClaimSpecs`: numbers for the specs of claims, so that claims of one template are compared by a number."""

import msgspec

from kubenexus.api.devices.resource_claim import ResourceClaimSpec

_encode = msgspec.json.Encoder(order="deterministic").encode


class ClaimSpecs:
    """The specs of claims, each once: claims of one template share a number."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._specs: dict[int, ResourceClaimSpec] = {}
        self._users: dict[int, int] = {}
        self._next = 0

    def add(self, spec: ResourceClaimSpec) -> int:
        key = _encode(spec)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._next
            self._specs[number], self._users[number] = spec, 0
            self._next += 1
        self._users[number] += 1
        return number

    def remove(self, number: int) -> None:
        self._users[number] -= 1
        if not self._users[number]:
            del self._numbers[_encode(self._specs.pop(number))], self._users[number]

    def get(self, number: int) -> ResourceClaimSpec | None:
        """Returns the spec of a number, or None if no claim has it any more."""
        return self._specs.get(number)
