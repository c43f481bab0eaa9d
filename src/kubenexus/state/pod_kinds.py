"""Kinds of pods: pods that are alike as victims of preemption share one row of these tables.

Most pods come from few templates. What a victim frees, whether it may be one, and which gang it belongs to are stored
once for a template, and a pod has only the code of its kind.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.gangs.declaration import POD_GROUP, WORKLOAD
from kubenexus.api.gangs.resolver import GroupLookup, disruption_of, minimum_of
from kubenexus.api.resource_names import Amounts
from kubenexus.api.workloads import DisruptionMode
from kubenexus.base.arrays import grow
from kubenexus.base.errors import Malformed
from kubenexus.state.footprint import Footprint
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.state.pods import PodRecord
from kubenexus.state.tenants import RANKS, TenantFields, Tenants
from kubenexus.state.victim_traits import GangClaim, VictimTraits

LARGEST: Final = 1 << 52  # amounts are capped here, so that sums over a node's pods are exact in floats
MAX_RESOURCES: Final = 64  # resources with a column; more are forgotten and made again
EXEMPT, DRIVER, BATCH, MOVABLE = 1, 2, 4, 8  # flags of a kind
_NO_GANG: Final = -1


class PodKindKey(NamedTuple):
    """The key of a kind. Footprint and traits are shared objects, so their identity is enough."""

    footprint: int
    traits: int
    namespace: str
    queue: str | None
    endless: bool


class PodKind(NamedTuple):
    """What a kind holds, so that the identities in its key stay in use."""

    key: PodKindKey
    footprint: Footprint
    traits: VictimTraits


class GangTable:
    """The gangs of pods on nodes, by code: `minimum` is how many members each needs, 0 if all may go one by one, and
    `together` whether they only go as a whole."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.minimum = np.zeros(64, np.int64)
        self.together = np.zeros(64, np.bool_)
        self._claims: list[dict[GangClaim, None]] = []
        self._counts: list[int] = []
        self._free: list[int] = []
        self._named: dict[tuple[str, str, str], set[int]] = {}
        self._stale: set[int] = set()

    def __len__(self) -> int:
        """The number of codes, of which some may be free."""
        return len(self._counts)

    def enter(self, claim: GangClaim) -> int:
        code = self.codes.get(claim.key)
        if code is None:
            code = self.codes[claim.key] = self._open()
        self._counts[code] += 1
        if claim not in self._claims[code]:
            self._claims[code][claim] = None
            self._stale.add(code)
            if claim.ref is not None:
                self._named.setdefault((claim.ref.kind, claim.ref.namespace, claim.ref.name), set()).add(code)
        return code

    def leave(self, code: int, claim: GangClaim) -> None:
        self._counts[code] -= 1
        if self._counts[code]:
            return
        for each in self._claims[code]:
            if each.ref is not None:
                place = (each.ref.kind, each.ref.namespace, each.ref.name)
                users = self._named.get(place, set())
                users.discard(code)
                if not users:
                    self._named.pop(place, None)
        del self.codes[claim.key]
        self._claims[code] = {}
        self._stale.discard(code)
        self._free.append(code)

    def refresh(self, groups: PodGroupStore) -> None:
        """Reads the minimums of gangs that are new, and of those whose object changed."""
        for place in groups.take_changed():
            self._stale |= self._named.get(place, set())
        for code in self._stale:
            needed = [_needed(claim, groups) for claim in self._claims[code]]
            self.minimum[code] = max((minimum for minimum, _ in needed), default=0)
            self.together[code] = any(together for _, together in needed)
        self._stale.clear()

    def _open(self) -> int:
        if self._free:
            return self._free.pop()
        if len(self._counts) == len(self.minimum):
            self.together = grow(self.together, 2 * len(self.minimum))
            self.minimum = grow(self.minimum, 2 * len(self.minimum))
        self._counts.append(0)
        self._claims.append({})
        return len(self._counts) - 1


def _needed(claim: GangClaim, groups: GroupLookup) -> tuple[int, bool]:
    """Returns how many members must stay, and whether they only go together. A gang whose object is missing or cannot
    be read goes as a whole."""
    if claim.ref is None:
        return claim.minimum, False
    found = groups.find(claim.ref.kind, claim.ref.namespace, claim.ref.name)
    if found is None:
        return 1, True
    try:
        mode = disruption_of(claim.ref, found) if claim.ref.kind in (POD_GROUP, WORKLOAD) else DisruptionMode()
        minimum = minimum_of(claim.ref, found)
    except Malformed:
        return 1, True
    return 0 if mode.single is not None else minimum, mode.all is not None


class PodKinds:
    """All kinds of pods on nodes. `flags` and `gang` are by kind. Only `VictimColumns` adds and removes pods."""

    def __init__(self) -> None:
        self.gangs = GangTable()
        self.flags = np.zeros(64, np.uint8)
        self.gang = np.full(64, _NO_GANG, np.int64)
        self._kinds: list[PodKind | None] = []
        self._codes: dict[PodKindKey, int] = {}
        self._counts: list[int] = []
        self._free: list[int] = []
        self._amounts: dict[str, Any] = {}
        self._schedulers: dict[str, Any] = {}
        self._ranks = np.zeros(64, np.int64)
        self._ranked_at = -1  # the version of the tenants by which kinds were ranked
        self._unranked: set[int] = set()

    def enter(self, record: PodRecord, queue: str | None) -> int:
        """Counts a pod, and returns the code of its kind."""
        key = PodKindKey(id(record.footprint), id(record.traits), record.namespace, queue, record.endless)
        code = self._codes.get(key)
        if code is None:
            code = self._add(key, record)
        self._counts[code] += 1
        return code

    def leave(self, code: int) -> None:
        self._counts[code] -= 1
        if self._counts[code]:
            return
        kind = self._kinds[code]
        if kind is not None:
            del self._codes[kind.key]
            if kind.traits.gang is not None:
                self.gangs.leave(int(self.gang[code]), kind.traits.gang)
        self._kinds[code] = None
        self._free.append(code)

    def uses(self, code: int) -> tuple[str, Amounts]:
        """Returns the namespace of a kind that has pods, and what each of them uses."""
        kind = self._kinds[code]
        assert kind is not None, "a kind with pods"
        return kind.key.namespace, kind.footprint.amounts

    def amounts(self, resource: str) -> Any:
        """Returns how much each kind takes of a resource. The caller must not write into it."""
        column = self._amounts.get(resource)
        if column is None:
            if len(self._amounts) >= MAX_RESOURCES:
                self._amounts.clear()
            column = self._amounts[resource] = np.zeros(len(self.flags), np.float64)
            for code, kind in enumerate(self._kinds):
                if kind is not None:
                    column[code] = _amount(kind.footprint, resource)
        return column

    def of_scheduler(self, name: str) -> Any:
        """Returns which kinds are pods of this scheduler, one of our profiles. The caller must not write into it."""
        column = self._schedulers.get(name)
        if column is None:
            column = self._schedulers[name] = np.zeros(len(self.flags), np.bool_)
            for code, kind in enumerate(self._kinds):
                column[code] = kind is not None and kind.traits.scheduler == name
        return column

    def ranks(self, tenants: Tenants) -> Any:
        """Returns the rank of the tier of each kind's tenant. Only kinds that are new, or whose tenant may be another
        one, are looked at."""
        stale = self._unranked if self._ranked_at == tenants.version else range(len(self._kinds))
        for code in stale:
            kind = self._kinds[code]
            if kind is not None:
                self._ranks[code] = RANKS[tenants.of_fields(_tenant_fields(kind, tenants)).tier]
        self._unranked.clear()
        self._ranked_at = tenants.version
        return self._ranks

    def _add(self, key: PodKindKey, record: PodRecord) -> int:
        code = self._codes[key] = self._free.pop() if self._free else self._open()
        traits = record.traits
        self._kinds[code] = PodKind(key, record.footprint, traits)
        marks = EXEMPT * traits.exempt | DRIVER * traits.driver | MOVABLE * traits.movable
        self.flags[code] = marks | BATCH * (not key.endless)
        self.gang[code] = _NO_GANG if traits.gang is None else self.gangs.enter(traits.gang)
        for resource, column in self._amounts.items():
            column[code] = _amount(record.footprint, resource)
        for scheduler, column in self._schedulers.items():
            column[code] = traits.scheduler == scheduler
        self._unranked.add(code)
        return code

    def _open(self) -> int:
        if len(self._kinds) == len(self.flags):
            size = 2 * len(self.flags)
            self.flags, self.gang = grow(self.flags, size), grow(self.gang, size, _NO_GANG)
            self._ranks = grow(self._ranks, size)
            self._amounts = {resource: grow(column, size) for resource, column in self._amounts.items()}
            self._schedulers = {name: grow(column, size) for name, column in self._schedulers.items()}
        self._kinds.append(None)
        self._counts.append(0)
        return len(self._kinds) - 1


def _amount(footprint: Footprint, resource: str) -> int:
    if resource == "pods":
        return 1
    return next((min(amount, LARGEST) for name, amount in footprint.amounts if name == resource), 0)


def _tenant_fields(kind: PodKind, tenants: Tenants) -> TenantFields:
    traits = kind.traits
    may_choose = tenants.may_choose(traits.scheduler)
    return TenantFields(kind.key.namespace, kind.key.queue, traits.class_tier, traits.pod_tier, may_choose)
