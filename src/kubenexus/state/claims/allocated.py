"""`AllocatedDevices`: the devices that claims hold, each claim once however often it is reported."""

from collections.abc import Iterable, Mapping, Set
from typing import Final, TypeAlias

import msgspec

from kubenexus.api.devices.resource_claim import AllocationResult
from kubenexus.state.claims.device import amount
from kubenexus.state.claims.pools import PoolId

DeviceId: TypeAlias = tuple[str, str, str]  # driver, pool and name

_NOTHING: Final[Mapping[str, int]] = {}
_NO_NAMES: Final[Set[str]] = frozenset()


class HeldDevice(msgspec.Struct, frozen=True, gc=False):
    """A device that a claim holds: all of it, or a share with the capacity that it takes (nano units, by name)."""

    id: DeviceId
    shared: bool = False
    consumed: Mapping[str, int] = {}


def held_devices(allocation: AllocationResult) -> tuple[HeldDevice, ...]:
    """Returns the devices that an allocation holds. One with admin access holds none."""
    return tuple(
        HeldDevice(
            (each.driver, each.pool, each.device),
            each.share_id is not None,
            {name: amount(text) for name, text in (each.consumed_capacity or {}).items()} if each.share_id else {},
        )
        for each in allocation.devices.results
        if not each.admin_access
    )


class AllocatedDevices:
    """Which devices are held, and by how many claims. `version` changes with each pool's devices."""

    def __init__(self) -> None:
        self._whole: dict[DeviceId, int] = {}
        self._shares: dict[DeviceId, list[Mapping[str, int]]] = {}
        self._of_pool: dict[PoolId, set[str]] = {}

    def add(self, held: Iterable[HeldDevice]) -> set[PoolId]:
        """Counts the devices of a claim. Returns the pools they are of."""
        changed = set()
        for each in held:
            if each.shared:
                self._shares.setdefault(each.id, []).append(each.consumed)
            else:
                self._whole[each.id] = self._whole.get(each.id, 0) + 1
            self._of_pool.setdefault(each.id[:2], set()).add(each.id[2])
            changed.add(each.id[:2])
        return changed

    def remove(self, held: Iterable[HeldDevice]) -> set[PoolId]:
        """Undoes `add`."""
        changed = set()
        for each in held:
            if each.shared:
                self._shares[each.id].remove(each.consumed)
                if not self._shares[each.id]:
                    del self._shares[each.id]
            else:
                self._whole[each.id] -= 1
                if not self._whole[each.id]:
                    del self._whole[each.id]
            if each.id not in self._whole and each.id not in self._shares:
                names = self._of_pool[each.id[:2]]
                names.discard(each.id[2])
                if not names:
                    del self._of_pool[each.id[:2]]
            changed.add(each.id[:2])
        return changed

    def in_pool(self, pool: PoolId) -> Set[str]:
        """Returns the names of the devices of a pool that are held, whole or in part. The caller must not change it."""
        return self._of_pool.get(pool, _NO_NAMES)

    def whole_word(self, pool: PoolId, positions: Mapping[str, int]) -> int | None:
        """Returns the held devices of a pool as bits at their positions, 0 if none is. None if any device of the
        cluster is shared: then bits do not say all."""
        names = self._of_pool.get(pool)
        if names is None:
            return 0
        if self._shares:
            return None
        word = 0
        for name in names:
            position = positions.get(name)
            if position is not None:
                word |= 1 << position
        return word

    def is_whole(self, device: DeviceId) -> bool:
        """Whether a claim holds all of the device."""
        return device in self._whole

    def is_held(self, device: DeviceId) -> bool:
        return device in self._whole or device in self._shares

    def is_shared(self, device: DeviceId) -> bool:
        return device in self._shares

    def consumed(self, device: DeviceId) -> Mapping[str, int]:
        """Returns what the shares of a device take together."""
        shares = self._shares.get(device)
        if not shares:
            return _NOTHING
        taken: dict[str, int] = {}
        for each in shares:
            for name, nano in each.items():
                taken[name] = taken.get(name, 0) + nano
        return taken
