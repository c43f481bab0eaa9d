"""What a ResourceReservation asks for: its entries in scheduler units, its owners, and its time. Pure.

The API server checks objects by the schema of the CRD. All is checked here again, since the CRD may be an older one.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from kubenexus.api.core import QuantityText, Toleration
from kubenexus.api.quantity import read_quantity
from kubenexus.api.reservations.resource_reservation import EntrySpec, ResourceReservation
from kubenexus.api.resource_names import Amounts, is_extended, to_scheduler_units
from kubenexus.api.selectors import EVERYTHING, NOTHING, LabelSelector, Selector, compile_selector
from kubenexus.base.errors import Malformed, truncated
from kubenexus.base.timestamps import parse_timestamp

GPU: Final = "nvidia.com/gpu"
DEFAULT_SECONDS: Final = 600.0
MAX_ENTRIES: Final = 128  # of one reservation; they are planned together
MAX_KINDS: Final = 8  # different entries of one reservation: each is a member class of the plan
MAX_RESOURCES: Final = 16  # names in one entry
MAX_NAMESPACES: Final = 64
MAX_SELECTOR: Final = 32  # requirements and values of a selector
MAX_TOLERATIONS: Final = 16
MAX_NODE_LABELS: Final = 16
TIERS: Final = ("", "gold", "silver", "bronze")
_DURATION: Final = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?")


class ReservationEntry(msgspec.Struct, frozen=True, gc=False):
    """The capacity of one pod. `amounts` are in scheduler units; `quantities` are the same as texts. `node` is empty if
    any node will do."""

    name: str
    amounts: Amounts
    quantities: tuple[tuple[str, QuantityText], ...]
    node: str = ""


class ReservationOwner(msgspec.Struct, frozen=True, gc=False):
    """The pods that may use the capacity: of these namespaces, of this gang, of this tier, with these labels. `tier`
    and `group` are empty if any will do. `everywhere`: the tier alone decides, in all namespaces."""

    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING
    everywhere: bool = False
    group: str = ""
    tier: str = ""
    pods: Selector = EVERYTHING

    def describe(self) -> str:
        """Returns the owner for people: `gang llama of ml`, `namespaces team=a`, `tier gold`."""
        if self.everywhere:
            where = f"tier {self.tier}"
        elif self.namespaces:
            names = sorted(self.namespaces)
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            where = ", ".join(names[:3]) + more
        else:
            where = f"namespaces {truncated(str(self.namespace_selector)) or 'all'}"
        gang = f"gang {self.group} of " if self.group else ""
        pods = f" (pods {truncated(str(self.pods))})" if self.pods.requirements else ""
        return gang + where + pods

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether pods of this namespace, with its labels, may be owners."""
        return self.everywhere or namespace in self.namespaces or self.namespace_selector.matches(labels)


class ReservationRequest(msgspec.Struct, frozen=True, gc=False):
    """All that a reservation asks for. `starts_at` and `expires_at` are seconds since 1970. Pods of more priority than
    `priority` may use the capacity if they fit nowhere else; None: no pod may but the owners' and critical ones. With
    `once` it is complete when `min_member` pods that use it are bound."""

    key: str
    uid: str
    entries: tuple[ReservationEntry, ...]
    owner: ReservationOwner
    starts_at: float
    expires_at: float
    min_member: int
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    priority: int | None = None
    once: bool = False

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]


def request_of(thing: ResourceReservation) -> ReservationRequest:
    """Returns what a reservation asks for. Raises Malformed, naming the field."""
    try:
        return _request(thing)
    except Malformed as problem:
        raise problem.within("spec") from None


def _request(thing: ResourceReservation) -> ReservationRequest:
    spec, meta = thing.spec, thing.metadata
    entries = _entries(thing)
    created = parse_timestamp(meta.creation_timestamp, 0.0)
    starts = created
    if spec.starts_at:
        at = parse_timestamp(spec.starts_at, None)
        if at is None:
            raise Malformed(
                f"must be a time like 2026-11-17T18:00:00Z, not {truncated(spec.starts_at)!r}", field="from"
            )
        starts = max(at, created)
    if spec.tenant_tier not in TIERS:
        raise Malformed(f"must be gold, silver or bronze, not {truncated(spec.tenant_tier)!r}", field="tenantTier")
    _limit(len(spec.node_selector), MAX_NODE_LABELS, "labels", "nodeSelector")
    _limit(len(spec.tolerations), MAX_TOLERATIONS, "tolerations", "tolerations")
    if spec.min_member < 0:
        raise Malformed("must not be negative", field="minMember")
    return ReservationRequest(
        meta.key,
        meta.uid,
        entries,
        _owner(thing),
        starts,
        starts + seconds_of(spec.duration),
        spec.min_member or len(entries),
        spec.node_selector,
        tuple(spec.tolerations),
        spec.priority,
        bool(spec.pod_group_name) or thing.is_managed,
    )


def seconds_of(duration: str) -> float:
    """Returns the seconds of `10m`, `1h30m` or `45s`; ten minutes for an empty text. Raises Malformed."""
    if not duration:
        return DEFAULT_SECONDS
    found = _DURATION.fullmatch(duration[:32])
    seconds = 0.0 if found is None else sum(int(n or 0) * s for n, s in zip(found.groups(), (3600, 60, 1), strict=True))
    if not seconds:
        raise Malformed(f"must be a duration like 10m or 1h30m, not {truncated(duration)!r}", field="duration")
    return float(seconds)


def _owner(thing: ResourceReservation) -> ReservationOwner:
    spec, owner = thing.spec, thing.spec.owner
    _limit(len(owner.namespaces), MAX_NAMESPACES, "namespaces", "owner.namespaces")
    selected = owner.namespace_selector is not None
    everywhere = bool(spec.tenant_tier) and not owner.namespaces and not selected
    namespaces = owner.namespaces or ([] if selected or everywhere else [thing.metadata.namespace])
    return ReservationOwner(
        frozenset(namespaces),
        _selector(owner.namespace_selector, NOTHING, "owner.namespaceSelector"),
        everywhere,
        spec.pod_group_name,
        spec.tenant_tier,
        _selector(owner.pod_selector, EVERYTHING, "owner.podSelector"),
    )


def _selector(selector: LabelSelector | None, otherwise: Selector, field: str) -> Selector:
    if selector is None:
        return otherwise
    _limit(selector.size, MAX_SELECTOR, "requirements and values", field)
    try:
        return compile_selector(selector)
    except Malformed as problem:
        raise problem.within(field) from None


def _entries(thing: ResourceReservation) -> tuple[ReservationEntry, ...]:
    spec = thing.spec
    if spec.reservations:
        _limit(len(spec.reservations), MAX_ENTRIES, "entries", "reservations")
        found = tuple([_entry(name, each) for name, each in sorted(spec.reservations.items())])
    elif spec.resources:
        found = _alike(thing)
    else:
        raise Malformed("must have entries, here or as count and resources", field="reservations")
    kinds = len({(each.amounts, each.node) for each in found})
    _limit(
        kinds, MAX_KINDS if not all(each.node for each in found) else MAX_ENTRIES, "different entries", "reservations"
    )
    return found


def _alike(thing: ResourceReservation) -> tuple[ReservationEntry, ...]:
    """Returns the entries of `count` and `resources`, or those that share the sum of `resources`."""
    spec = thing.spec
    number = spec.count or spec.min_member or 1
    if not 0 < number <= MAX_ENTRIES:
        raise Malformed(f"must be from 1 to {MAX_ENTRIES}, not {number}", field="count" if spec.count else "minMember")
    nanos = _nanos(spec.resources, "resources")
    if not spec.count:
        nanos = {name: -(-nano // number) for name, nano in nanos.items()}
        # Half a GPU is no capacity that a kubelet gives: round up to whole units.
        nanos = {name: -(-nano // 10**9) * 10**9 if is_extended(name) else nano for name, nano in nanos.items()}
    amounts, quantities = _amounts(nanos, "resources")
    prefix = spec.pod_group_name or thing.metadata.name
    return tuple([ReservationEntry(f"{prefix}-member-{i}", amounts, quantities) for i in range(number)])


def _entry(name: str, spec: EntrySpec) -> ReservationEntry:
    field = f"reservations[{truncated(name)}]"
    if not _NAME.fullmatch(name):
        raise Malformed("must be a name of lower case letters, digits, '-' and '.', at most 63", field=field)
    short = (("cpu", spec.cpu), ("memory", spec.memory), (GPU, spec.gpu))
    texts = {name: text for name, text in short if text is not None} | spec.resources
    amounts, quantities = _amounts(_nanos(texts, field), field)
    return ReservationEntry(name, amounts, quantities, spec.node)


def _nanos(texts: Mapping[str, QuantityText], field: str) -> dict[str, int]:
    _limit(len(texts), MAX_RESOURCES, "resources", field)
    nanos = {}
    for name, text in texts.items():
        try:
            nanos[name] = read_quantity(text).nano
        except Malformed as problem:
            raise problem.within(f"{field}[{truncated(name)}]") from None
        if nanos[name] < 0:
            raise Malformed("must not be negative", field=f"{field}[{truncated(name)}]")
    return nanos


def _amounts(nanos: Mapping[str, int], field: str) -> tuple[Amounts, tuple[tuple[str, QuantityText], ...]]:
    amounts = to_scheduler_units(nanos)
    if not amounts:
        raise Malformed("must name a resource and an amount of it", field=field)
    return amounts, tuple([(name, quantity_text(name, amount)) for name, amount in amounts])


def quantity_text(name: str, amount: int) -> str:
    """Returns an amount in scheduler units as a quantity: cpu is in thousandths."""
    return f"{amount}m" if name == "cpu" else str(amount)


def _limit(number: int, most: int, what: str, field: str) -> None:
    if number > most:
        raise Malformed(f"has {number} {what}; at most {most} are allowed", field=field)


def total_amounts(entries: tuple[ReservationEntry, ...]) -> dict[str, int]:
    """Returns the sum of all entries, by resource."""
    sums: dict[str, int] = {}
    for each in entries:
        for name, amount in each.amounts:
            sums[name] = sums.get(name, 0) + amount
    return sums
