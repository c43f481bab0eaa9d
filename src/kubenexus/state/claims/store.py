"""`ClaimStore`: claims, device classes and pools, and the devices that are allocated.

A claim holds devices by the allocation in its status, or, until that is written, by the assignment of the pod that was
placed with it. Both count once: the status replaces the assignment when the watch delivers it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from kubenexus.api.devices.device_taint_rule import DeviceTaintRule
from kubenexus.api.devices.resource_claim import (
    EXTENDED_RESOURCE_CLAIM,
    AllocationResult,
    DeviceClass,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.base.errors import Malformed
from kubenexus.state.change_log import ChangeLog
from kubenexus.state.claims.allocated import AllocatedDevices, HeldDevice, held_devices
from kubenexus.state.claims.claim_specs import ClaimSpecs
from kubenexus.state.claims.pod_groups import PodGroupClaims
from kubenexus.state.claims.pools import MAX_SLICES, Pool, PoolBuilder, PoolId, PoolSlice, pool_slice
from kubenexus.state.claims.taint_rules import TaintRules, matches

IMPLICIT_RESOURCE: Final = "deviceclass.resource.kubernetes.io/"
_READ, _SLICE = 16, 1  # what it costs to read the pools of a node, and for each slice that it may see; a device: 1


class StoredClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim as it is in the API server. `spec` is its number in `ClaimSpecs`."""

    claim: ResourceClaim
    spec: int
    held: tuple[HeldDevice, ...]


class PendingAllocation(msgspec.Struct, frozen=True, gc=False):
    """An allocation that a placed pod brings and that is not written yet, and how many pods share it. `trial`: the
    placement is not committed. Then other members of the same gang can use it; pods of other jobs wait until it is
    written."""

    allocation: AllocationResult
    held: tuple[HeldDevice, ...]
    pods: int
    trial: bool


class ClaimChoice(msgspec.Struct, frozen=True, gc=False):
    """What a plugin assigns to a claim of a pod, by its position in the pod; -1: the claim for its extended resources,
    which is made with `spec`. `mappings` then say which request serves which container."""

    position: int
    allocation: AllocationResult
    spec: ResourceClaimSpec | None = None
    mappings: tuple[Any, ...] = ()


class ClaimAllocation(msgspec.Struct, frozen=True, gc=False):
    """What a pod's assignment has for one of its claims. `claim` is the key of a claim that exists; "" is the claim
    that is made for the pod's extended resources, with `spec`."""

    claim: str
    uid: str
    allocation: AllocationResult
    spec: ResourceClaimSpec | None = None
    mappings: tuple[Any, ...] = ()


class ClaimStore:
    """Only the ledger and its transactions write here. `changes` logs the rows whose devices changed, `version` counts
    changes that may concern any row."""

    def __init__(self, row_of: Mapping[str, int]) -> None:
        self._row_of = row_of
        self.claims: dict[str, StoredClaim] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.class_of_resource: dict[str, str] = {}
        self.specs = ClaimSpecs()
        self.pod_groups = PodGroupClaims()
        self.allocated = AllocatedDevices()
        self.pending: dict[str, PendingAllocation] = {}
        self.changes = ChangeLog()
        self.unlisted = False  # claims cannot be read, so it is not known which devices are free
        self.version = self.class_version = 0
        self.by_specs: dict[tuple[int, ...], Any] = {}  # what readers derive from specs and classes
        self._extended: dict[str, str] = {}  # the claim for extended resources, by the UID of its pod
        self._slices: dict[str, PoolSlice] = {}
        self._by_pool: dict[PoolId, dict[str, PoolSlice]] = {}
        self._on_node: dict[str, dict[str, PoolSlice]] = {}
        self._shared: dict[str, PoolSlice] = {}
        self._builder = PoolBuilder(self._by_pool)
        self._rules = TaintRules()
        self._outdated: dict[str, None] = {}  # nodes whose pools were forgotten, in portions to be read again
        self._pools: dict[str, tuple[Mapping[str, str], tuple[Pool, ...]]] = {}
        self._invalid: dict[PoolId, str] = {}
        self._warnings: dict[PoolId, str] = {}

    # --- objects ---------------------------------------------------------------------------------------------------

    def set_class(self, found: DeviceClass) -> None:
        if self.classes.get(found.metadata.name) != found:
            self.classes[found.metadata.name] = found
            self._name_resources()

    def remove_class(self, name: str) -> None:
        if self.classes.pop(name, None) is not None:
            self._name_resources()

    def _name_resources(self) -> None:
        """Finds the class of each extended resource: of several the newest, then the first by name."""
        self.version += 1
        self.class_version += 1
        self.by_specs.clear()
        named = {IMPLICIT_RESOURCE + name: name for name in self.classes}
        older = sorted(self.classes.values(), key=lambda each: each.metadata.name, reverse=True)
        for each in sorted(older, key=lambda each: each.metadata.creation_timestamp):
            if "/" in each.spec.extended_resource_name:  # an extended resource has a slash
                named[each.spec.extended_resource_name] = each.metadata.name
        self.class_of_resource = named

    def set_taint_rule(self, rule: DeviceTaintRule) -> None:
        old = self._rules.get(rule.metadata.name)
        if old is None or old.spec != rule.spec:
            self._rules.set(rule)
            self._rules_changed(*(() if old is None else (old,)), rule)

    def remove_taint_rule(self, name: str) -> None:
        old = self._rules.get(name)
        if old is not None:
            self._rules.remove(name)
            self._rules_changed(old)

    def _rules_changed(self, *rules: DeviceTaintRule) -> None:
        """Forgets the pools whose devices a rule is or was for."""
        selectors = [each.spec.device_selector for each in rules if each.spec.device_selector is not None]
        concerned = [each for each in self._slices.values() if any(matches(one, each) for one in selectors)]
        for each in concerned:
            self._builder.forget(each.pool)
        if any(not each.node_name for each in concerned):
            self._all_changed()
            return
        for each in concerned:
            self._pools.pop(each.node_name, None)
            self._outdated[each.node_name] = None
            self._row_changed(each.node_name)

    def _all_changed(self) -> None:
        self.version += 1
        self._pools.clear()
        self._outdated = dict.fromkeys(self._row_of)

    def set_slice(self, found: ResourceSlice) -> None:
        """Adds or updates a slice. Raises Malformed if an amount cannot be read; then its pool lacks the slice."""
        name = found.metadata.name
        try:
            fresh: PoolSlice | None = pool_slice(found)
        except Malformed:
            self._put_slice(name, None)
            raise
        self._put_slice(name, fresh)

    def remove_slice(self, name: str) -> None:
        self._put_slice(name, None)

    def _put_slice(self, name: str, fresh: PoolSlice | None) -> None:
        old = self._slices.pop(name, None)
        self._rules.forget(name)
        if old is not None:
            _take_out(self._by_pool, old.pool, name)
            if old.pool not in self._by_pool:
                self._invalid.pop(old.pool, None)
            if old.node_name:
                _take_out(self._on_node, old.node_name, name)
            self._shared.pop(name, None)
        if fresh is not None:
            self._slices[name] = fresh
            self._by_pool.setdefault(fresh.pool, {})[name] = fresh
            if fresh.node_name:
                self._on_node.setdefault(fresh.node_name, {})[name] = fresh
            else:
                self._shared[name] = fresh
        for each in (old, fresh):
            if each is not None:
                self._pool_changed(each)

    def _pool_changed(self, changed: PoolSlice) -> None:
        """A slice may complete its pool for every node that sees a part of it. A pool that had too many slices before
        is as invalid as it was."""
        self._builder.forget(changed.pool)
        others = self._by_pool.get(changed.pool, {})
        slices = [changed] if len(others) > MAX_SLICES + 1 else [changed, *others.values()]
        if not all(each.node_name for each in slices):
            self._all_changed()
            return
        for node in {each.node_name for each in slices}:
            self._pools.pop(node, None)
            self._outdated[node] = None
            self._row_changed(node)

    def set_claim(self, claim: ResourceClaim) -> None:
        """Adds or updates a claim."""
        meta = claim.metadata
        old = self.claims.get(meta.key)
        if old is not None and old.claim == claim:
            return
        allocation = claim.status.allocation
        held = () if allocation is None else held_devices(allocation)
        if old is not None and old.held == held and _is_same_claim(old.claim, claim):  # a finalizer, say
            self.claims[meta.key] = StoredClaim(claim, old.spec, held)
            return
        fresh = StoredClaim(claim, self.specs.add(claim.spec), held)
        self.remove_claim(meta.key)
        self.claims[meta.key] = fresh
        self._hold(meta.uid, held, +1)
        for owner in meta.owner_references if meta.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" else ():
            if owner.controller:
                self._extended[owner.uid] = meta.key

    def remove_claim(self, key: str) -> None:
        old = self.claims.pop(key, None)
        if old is None:
            return
        self._hold(old.claim.metadata.uid, old.held, -1)
        self.specs.remove(old.spec)
        for owner in old.claim.metadata.owner_references:
            if self._extended.get(owner.uid) == key:
                del self._extended[owner.uid]

    def extended_claim(self, pod_uid: str) -> StoredClaim | None:
        """Returns the claim that was made for the extended resources of a pod."""
        key = self._extended.get(pod_uid) if pod_uid else None
        return None if key is None else self.claims.get(key)

    # --- allocations -----------------------------------------------------------------------------------------------

    def enter(self, allocations: Iterable[ClaimAllocation], trial: bool = False) -> None:
        """Counts the devices that a placed pod brings for its claims; `trial`: until the placement is committed or
        rolled back."""
        for each in allocations:
            known = self.pending.get(each.uid)
            if known is not None:
                self.pending[each.uid] = msgspec.structs.replace(known, pods=known.pods + 1)
                continue
            held = held_devices(each.allocation)
            if not self._is_allocated(each):
                self._count(held, +1)
            self.pending[each.uid] = PendingAllocation(each.allocation, held, 1, trial)

    def confirm(self, allocations: Iterable[ClaimAllocation]) -> None:
        """Records that the placement of a pod was committed."""
        for each in allocations:
            known = self.pending[each.uid]
            if known.trial:
                self.pending[each.uid] = msgspec.structs.replace(known, trial=False)

    def leave(self, allocations: Iterable[ClaimAllocation]) -> None:
        """Undoes `enter`."""
        for each in allocations:
            known = self.pending[each.uid]
            if known.pods > 1:
                self.pending[each.uid] = msgspec.structs.replace(known, pods=known.pods - 1)
                continue
            del self.pending[each.uid]
            if not self._is_allocated(each):
                self._count(known.held, -1)

    def _is_allocated(self, each: ClaimAllocation) -> bool:
        """Whether the claim's status has an allocation, which counts instead of a pending one."""
        stored = self.claims.get(each.claim) if each.claim else None
        return stored is not None and stored.claim.metadata.uid == each.uid and bool(stored.held)

    def _hold(self, uid: str, held: tuple[HeldDevice, ...], sign: int) -> None:
        """Counts what the status of a claim holds, instead of what a placed pod brings for it."""
        if not held:
            return
        pending = self.pending.get(uid)
        if pending is not None:
            if pending.held == held:
                return  # the same devices, now by the status: no row changes
            self._count(pending.held, -sign)
        self._count(held, sign)

    def _count(self, held: tuple[HeldDevice, ...], sign: int) -> None:
        pools = self.allocated.add(held) if sign > 0 else self.allocated.remove(held)
        for pool in pools:
            for each in self._by_pool.get(pool, {}).values():
                if each.node_name:
                    self._row_changed(each.node_name)
                else:
                    self.version += 1

    def _row_changed(self, node: str) -> None:
        row = self._row_of.get(node)
        if row is not None:
            self.changes.record(row)

    # --- reading ---------------------------------------------------------------------------------------------------

    def pools(self, node: str, labels: Mapping[str, str]) -> tuple[Pool, ...]:
        """Returns the pools that have devices for a node."""
        if not self._shared and node not in self._on_node:
            return ()
        known = self._pools.get(node)
        if known is not None and (not self._shared or known[0] == labels):
            return known[1]
        seen = map(self._rules.applied, (*self._own_slices(node), *self._shared.values()))
        found = self._builder.of_node(seen, node, labels)
        for pool in found:
            self._note_validity(pool)
        self._pools[node] = (labels if self._shared else {}, found)
        return found

    def _own_slices(self, node: str) -> Iterable[PoolSlice]:
        """Returns the slices that name a node; none if they are too many, of any number of pools."""
        own, key = self._on_node.get(node, {}), ("node", node)
        if len(own) <= MAX_SLICES:
            self._invalid.pop(key, None)
            return own.values()
        if key not in self._invalid:
            self._invalid[key] = self._warnings[key] = f"more than {MAX_SLICES} slices for one node"
        return ()

    def _note_validity(self, pool: Pool) -> None:
        """Collects a warning if the pool became invalid, or is so in another way. Other nodes may see it as valid."""
        problem = pool.invalid or pool.surplus
        if problem and self._invalid.get(pool.id) != problem:
            self._invalid[pool.id] = self._warnings[pool.id] = problem

    def take_warnings(self) -> dict[str, str]:
        """Returns the pools whose devices cannot be allocated, each once and again when the reason changes."""
        taken, self._warnings = self._warnings, {}
        return {"/".join(pool): problem for pool, problem in taken.items()}

    @property
    def mark(self) -> int:
        """A number that grows with each change of a pool, a class or the devices that are held."""
        return self.version + self.changes.mark

    @property
    def labels_matter(self) -> bool:
        """Whether the pools of a node follow from its labels, too: a slice is for more than one node."""
        return bool(self._shared)

    @property
    def outdated(self) -> int:
        """The number of nodes whose pools are to be read again before a decision."""
        return len(self._outdated)

    def read_pools(self, labels: Callable[[int], Mapping[str, str]], most: int) -> None:
        """Reads the pools of up to `most` nodes again, fewer if these see many slices or devices. After a change that
        concerns all nodes of a large cluster, all at once would take half a second."""
        left, each_node = most * _READ, _READ + _SLICE * len(self._shared)
        while left > 0 and self._outdated:
            node = next(iter(self._outdated))
            del self._outdated[node]
            row, devices = self._row_of.get(node), self._builder.devices
            if row is not None:
                self.pools(node, labels(row) if self._shared else {})
            left -= each_node + self._builder.devices - devices

    def node_left(self, node: str) -> None:
        self._pools.pop(node, None)
        self._outdated.pop(node, None)


def _is_same_claim(one: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether two claims are equal in all that is stored of them besides the claim itself and its devices."""
    old, new = one.metadata, other.metadata
    owned = old.owner_references == new.owner_references and old.annotations == new.annotations
    return owned and old.uid == new.uid and one.spec == other.spec


def _take_out(table: dict[Any, dict[str, PoolSlice]], key: Any, name: str) -> None:
    del table[key][name]
    if not table[key]:
        del table[key]
