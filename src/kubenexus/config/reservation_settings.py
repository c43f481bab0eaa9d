"""The settings of reservations (`pluginConfig`, `ResourceReservation`). All profiles share them, as they share the
ledger."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.config.args import RESERVATIONS
from kubenexus.config.durations import Duration


class ReservationSettings(msgspec.Struct, frozen=True):
    """`namespaces` may reserve up to `max_percent` of each resource, `unlimited` any part. `max_seconds` is how long a
    reservation may last. `write_objects`: whether the scheduler makes objects for its own reservations."""

    namespaces: frozenset[str] = frozenset()
    unlimited: frozenset[str] = frozenset({"kubenexus-system"})
    max_percent: int = 25
    max_seconds: float = 86_400.0
    write_objects: bool = True

    def allows(self, namespace: str) -> bool:
        """Whether reservations of this namespace take effect."""
        return namespace in self.unlimited or namespace in self.namespaces


def reservation_settings(args: Mapping[str, Mapping[str, Any]]) -> ReservationSettings:
    """Returns the settings of the first profile that has some, from the arguments by profile."""
    found = next((each[RESERVATIONS] for each in args.values() if RESERVATIONS in each), None)
    if found is None:
        return ReservationSettings()
    usual = ReservationSettings()
    return ReservationSettings(
        frozenset(found.get("namespaces", ())),
        frozenset(found.get("unlimitedNamespaces", usual.unlimited)),
        found.get("maxPercent", usual.max_percent),
        Duration.of(found["maxDuration"]).seconds if "maxDuration" in found else usual.max_seconds,
        found.get("writeObjects", usual.write_objects),
    )
