"""What a queue sets: its place in the tree, amounts in scheduler units, and the namespaces whose jobs it takes. Pure.

The API server checks objects by the schema of the CRD. All is checked here again, since the CRD may be an older one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from kubenexus.api.core import ResourceList
from kubenexus.api.devices.hardware_tier import HardwareTier
from kubenexus.api.quantity import NANO, read_quantity
from kubenexus.api.queues.queue import QueueSpec, QueueTier
from kubenexus.api.resource_names import PODS, to_scheduler_units
from kubenexus.api.selectors import NOTHING, Selector, compile_selector
from kubenexus.base.errors import Malformed, truncated

DEFAULT_QUEUE: Final = "default"  # takes the jobs of namespaces that no other queue takes, defined or not
MAX_WEIGHT: Final = 1_000_000
MAX_RESOURCES: Final = 32  # names in one field
MAX_NAMESPACES: Final = 1_000  # names in one queue
MAX_SELECTOR: Final = 32  # requirements and values of a selector
TIERS: Final = tuple([each.label for each in (HardwareTier.PREMIUM, HardwareTier.STANDARD, HardwareTier.ECONOMY)])
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?")


class QueueSettings(msgspec.Struct, frozen=True):
    """A queue that can be used. Amounts are by resource, in scheduler units; `pods` counts pods. Those of nodes of a
    hardware tier have names of their own (`tier_resource`).

    guaranteed          what the queue gets before any other queue borrows it, at least what it gets of all tiers
    most                what its jobs may use at most: its limit, or its guarantee and what it may borrow
    kept                the part of the guarantee that no other queue may use, idle or not
    namespace_limit     what the jobs of each of its namespaces may use at most
    guaranteed_by_tier  what of that is guaranteed on nodes of a tier
    """

    name: str
    parent: str = ""
    weight: int = 1
    guaranteed: Mapping[str, int] = {}
    most: Mapping[str, int] = {}
    kept: Mapping[str, int] = {}
    namespace_limit: Mapping[str, int] = {}
    namespaces: tuple[str, ...] = ()
    selector: Selector = NOTHING
    guaranteed_by_tier: Mapping[str, int] = {}

    @property
    def tier_resources(self) -> set[str]:
        """The names of resources of tiers that the queue sets."""
        names = {*self.most, *self.kept, *self.namespace_limit, *self.guaranteed_by_tier}
        return {name for name in names if tier_of(name)}


def tier_resource(resource: str, tier: str) -> str:
    """Returns the name of a resource on nodes of a hardware tier: `nvidia.com/gpu@premium`. No resource of a pod has
    such a name."""
    return f"{resource}@{tier}"


def tier_of(name: str) -> str:
    """Returns the tier of a name that `tier_resource` made, "" of any other."""
    return name.partition("@")[2]


def queue_settings(name: str, spec: QueueSpec) -> QueueSettings:
    """Returns what a queue sets. Raises Malformed, naming the field."""
    try:
        return _settings(name, spec)
    except Malformed as problem:
        raise problem.within("spec") from None


class _Amounts(NamedTuple):
    """What a queue sets, for all nodes or for those of a tier."""

    guaranteed: dict[str, int]
    most: dict[str, int]
    kept: dict[str, int]
    namespace_limit: dict[str, int]


def _settings(name: str, spec: QueueSpec) -> QueueSettings:
    if spec.parent and (spec.parent == name or not _NAME.fullmatch(spec.parent)):
        raise Malformed(f"must be the name of another queue, not {truncated(spec.parent)!r}", field="parent")
    if not 0 <= spec.weight <= MAX_WEIGHT:
        raise Malformed(f"must be from 0 to {MAX_WEIGHT}, not {spec.weight}", field="weight")
    _at_most(len(spec.namespaces), MAX_NAMESPACES, "names", "namespaces")
    tiers = {tier: _tier(tier, each) for tier, each in spec.tiers.items()}
    in_tiers: Counter[str] = Counter()
    for each in tiers.values():
        in_tiers.update(each.guaranteed)
    whole = _all_amounts(spec, in_tiers)
    parts = [(whole, ""), *((each, tier) for tier, each in tiers.items())]
    return QueueSettings(
        name,
        spec.parent,
        spec.weight,
        whole.guaranteed,
        _named([(each.most, tier) for each, tier in parts]),
        _named([(each.kept, tier) for each, tier in parts]),
        _named([(each.namespace_limit, tier) for each, tier in parts]),
        tuple(spec.namespaces),
        _selector(spec),
        _named([(each.guaranteed, tier) for each, tier in parts if tier]),
    )


def _tier(tier: str, spec: QueueTier) -> _Amounts:
    if tier not in TIERS:
        raise Malformed(f"must be {', '.join(TIERS[:-1])} or {TIERS[-1]}", field=f"tiers[{truncated(tier)}]")
    try:
        return _all_amounts(spec, {})
    except Malformed as problem:
        raise problem.within(f"tiers[{tier}]") from None


def _all_amounts(spec: QueueSpec | QueueTier, in_tiers: Mapping[str, int]) -> _Amounts:
    """Returns what is set. At least `in_tiers` is guaranteed."""
    guaranteed, limit = _amounts(spec.guaranteed, "guaranteed"), _amounts(spec.limit, "limit")
    guaranteed |= {name: max(amount, guaranteed.get(name, 0)) for name, amount in in_tiers.items()}
    for resource, amount in guaranteed.items():
        if limit.get(resource, amount) < amount:
            raise Malformed("must not be less than what is guaranteed", field=f"limit[{truncated(resource)}]")
    borrowing, lending = _amounts(spec.borrowing_limit, "borrowingLimit"), _amounts(spec.lending_limit, "lendingLimit")
    most = dict(limit)
    for resource, amount in borrowing.items():
        allowed = guaranteed.get(resource, 0) + amount
        most[resource] = min(allowed, most.get(resource, allowed))
    kept = {resource: guaranteed.get(resource, 0) - amount for resource, amount in lending.items()}
    kept = {resource: amount for resource, amount in kept.items() if amount > 0}
    return _Amounts(guaranteed, most, kept, _amounts(spec.namespace_limit, "namespaceLimit"))


def _named(parts: Iterable[tuple[Mapping[str, int], str]]) -> dict[str, int]:
    """Returns amounts of tiers under the names of their resources there."""
    return {
        tier_resource(name, tier) if tier else name: amount
        for amounts, tier in parts
        for name, amount in amounts.items()
    }


def _selector(spec: QueueSpec) -> Selector:
    if spec.namespace_selector is None:
        return NOTHING
    _at_most(spec.namespace_selector.size, MAX_SELECTOR, "requirements and values", "namespaceSelector")
    try:
        return compile_selector(spec.namespace_selector)
    except Malformed as problem:
        raise problem.within("namespaceSelector") from None


def _amounts(quantities: ResourceList, field: str) -> dict[str, int]:
    """Returns amounts in scheduler units. A resource with the amount 0 is kept: it means none."""
    _at_most(len(quantities), MAX_RESOURCES, "resources", field)
    found: dict[str, int] = {}
    for name, text in quantities.items():
        place = f"{field}[{truncated(name)}]"
        try:
            nano = read_quantity(text).nano
        except Malformed as problem:
            raise problem.within(place) from None
        if nano < 0:
            raise Malformed("must not be negative", field=place)
        if name == PODS:
            found[name] = nano // NANO
        elif not nano:
            found[name] = 0
        else:
            amounts = to_scheduler_units({name: nano})
            if not amounts:
                raise Malformed("must be cpu, memory, ephemeral-storage, pods or an extended resource", field=place)
            found[name] = amounts[0][1]
    return found


def _at_most(number: int, most: int, what: str, field: str) -> None:
    if number > most:
        raise Malformed(f"has {number} {what}; at most {most} are allowed", field=field)
