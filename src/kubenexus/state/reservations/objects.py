"""The ResourceReservations of the API server. This module only stores them; `app.reservations` acts on them."""

from itertools import islice

import msgspec

from kubenexus.api.reservations.resource_reservation import ResourceReservation, ResourceReservationSpec

_NO_SPEC = ResourceReservationSpec()


class ReservationObjects:
    """The objects by key, and the keys that changed since they were last taken. `managed` are the keys of those that
    have the scheduler's label."""

    def __init__(self) -> None:
        self.by_key: dict[str, ResourceReservation] = {}
        self.managed: dict[str, None] = {}
        self._changed: dict[str, None] = {}

    def seen(self, thing: ResourceReservation) -> None:
        key = thing.metadata.key
        self.by_key[key] = thing
        self._changed[key] = None
        if thing.is_managed:
            self.managed[key] = None
        else:
            self.managed.pop(key, None)

    def gone(self, key: str) -> None:
        self.managed.pop(key, None)
        if self.by_key.pop(key, None) is not None:
            self._changed[key] = None

    def drop_spec(self, key: str) -> None:
        """Forgets what an object asks for. It has no effect, and its namespace may have thousands of them."""
        self.by_key[key] = msgspec.structs.replace(self.by_key[key], spec=_NO_SPEC)

    def some_managed(self, most: int) -> list[ResourceReservation]:
        """Returns objects with the scheduler's label, at most so many; the next call returns those after them."""
        keys = list(islice(self.managed, most))
        for key in keys:  # to the end
            del self.managed[key]
            self.managed[key] = None
        return [self.by_key[key] for key in keys]

    @property
    def any_changed(self) -> bool:
        return bool(self._changed)

    def take_changed(self, most: int) -> list[str]:
        """Returns keys of objects that came, changed or went, at most so many at a time."""
        keys = list(islice(self._changed, most))
        for key in keys:
            del self._changed[key]
        return keys
