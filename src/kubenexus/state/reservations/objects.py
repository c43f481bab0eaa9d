"""The ResourceReservations of the API server. This module only stores them; `app.reservations` acts on them."""

from kubenexus.api.reservations.resource_reservation import ResourceReservation


class ReservationObjects:
    """The objects by key, and the keys that changed since they were last taken."""

    def __init__(self) -> None:
        self.by_key: dict[str, ResourceReservation] = {}
        self._changed: dict[str, None] = {}

    def seen(self, thing: ResourceReservation) -> None:
        self.by_key[thing.metadata.key] = thing
        self._changed[thing.metadata.key] = None

    def gone(self, key: str) -> None:
        if self.by_key.pop(key, None) is not None:
            self._changed[key] = None

    @property
    def any_changed(self) -> bool:
        return bool(self._changed)

    def take_changed(self, most: int) -> list[str]:
        """Returns keys of objects that came, changed or went, at most so many at a time."""
        keys = list(self._changed)[:most]
        for key in keys:
            del self._changed[key]
        return keys
