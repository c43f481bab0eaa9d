"""What claims ask for, compiled: each request with its class, selectors, constraints and number of devices.

Compiled once for a set of claims, for all nodes. Errors have kube-scheduler's words. A claim is named by its key,
which only its own pod reports.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubenexus.api.cel.attribute_reads import Read
from kubenexus.api.cel.selector import DeviceSelector, device_selector
from kubenexus.api.devices.resource_claim import (
    ALL_DEVICES,
    EXACT_COUNT,
    MAX_RESULTS,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelectorSpec,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from kubenexus.base.errors import truncated

EQUAL: Final = "equal"  # in a Read: not the value of the attribute counts, but which devices have equal ones
MAX_EXPRESSIONS: Final = 32_000  # characters of the selectors of a pod, each with 100 more: 2 us to compile each
_OF_EXPRESSION: Final = 100
MAX_CLAIMS: Final = 16  # of a pod that are allocated together
MAX_TOGETHER: Final = 64  # of the members of a gang on one node


class ClaimError(Exception):
    """A claim that can be allocated on no node, whatever its devices: the attempt fails."""


class CompiledSelector(msgspec.Struct, frozen=True, gc=False):
    """A selector with the begin of its errors: `class NAME: selector #0`."""

    subject: str
    selector: DeviceSelector


class CompiledRequest(msgspec.Struct, frozen=True, gc=False):
    """A request, or one alternative of a request (then `parent` is the request's name). `names` are those by which
    constraints and configurations mean it."""

    name: str
    parent: str
    full_name: str
    names: tuple[str, ...]
    class_name: str
    selectors: tuple[CompiledSelector, ...]
    request: ExactDeviceRequest
    count: int
    every: bool
    admin: bool


class CompiledConstraint(msgspec.Struct, frozen=True, gc=False):
    """Devices of `requests` (all, if empty) must have equal values of an attribute, or different ones."""

    domain: str
    name: str
    distinct: bool
    requests: frozenset[str]

    def concerns(self, request: CompiledRequest) -> bool:
        return not self.requests or not self.requests.isdisjoint(request.names)


class CompiledClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim to allocate. Each of `requests` has one alternative or several, the best first."""

    key: str
    spec: ResourceClaimSpec
    requests: tuple[tuple[CompiledRequest, ...], ...]
    constraints: tuple[CompiledConstraint, ...]

    @property
    def every(self) -> bool:
        """Whether a request asks for all devices."""
        return any(each.every for alternatives in self.requests for each in alternatives)

    @property
    def reads(self) -> frozenset[Read] | None:
        """What selectors and constraints read of devices, or None for everything."""
        found: set[Read] = {Read(EQUAL, each.domain, each.name) for each in self.constraints}
        for alternatives in self.requests:
            for request in alternatives:
                for each in request.selectors:
                    names = each.selector.reads
                    if names is None:
                        return None
                    found |= names
        return frozenset(found)


def compile_claims(
    claims: Sequence[tuple[str, ResourceClaimSpec]], classes: Mapping[str, DeviceClass], most: int = MAX_CLAIMS
) -> tuple[CompiledClaim, ...]:
    """Compiles claims, each with its key. Raises ClaimError."""
    if len(claims) > most:
        raise ClaimError(f"the pod has {len(claims)} resource claims, more than {most}")
    expressions = {each for _, spec in claims for each in _expressions(spec, classes)}
    length = sum(len(each) + _OF_EXPRESSION for each in expressions)
    if length > MAX_EXPRESSIONS:
        what = f"{len(expressions)} selectors with {length - _OF_EXPRESSION * len(expressions)} characters"
        raise ClaimError(f"the claims of the pod have {what}, which are too many to compile")
    return tuple([_claim(key, spec, classes) for key, spec in claims])


def _expressions(spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass]) -> Iterator[str]:
    for request in spec.devices.requests:
        for each in request.first_available or (request.exactly or ExactDeviceRequest(),):
            of_class = classes.get(each.device_class_name)
            selectors = (*each.selectors, *(() if of_class is None else of_class.spec.selectors))
            yield from (selector.cel.expression for selector in selectors if selector.cel is not None)


def _claim(key: str, spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass]) -> CompiledClaim:
    subject = f"claim {key}"
    requests = [_alternatives(subject, each, classes) for each in spec.devices.requests]
    constraints = [_constraint(subject, i, each) for i, each in enumerate(spec.devices.constraints)]
    return CompiledClaim(key, spec, tuple(requests), tuple(constraints))


def _alternatives(
    subject: str, request: DeviceRequest, classes: Mapping[str, DeviceClass]
) -> tuple[CompiledRequest, ...]:
    if request.first_available:
        return tuple([_request(subject, each.name, request.name, each, classes) for each in request.first_available])
    return (_request(subject, request.name, "", request.exactly or ExactDeviceRequest(), classes),)


def _request(
    subject: str, name: str, parent: str, request: ExactDeviceRequest, classes: Mapping[str, DeviceClass]
) -> CompiledRequest:
    place = f"{subject}, request {name}"
    if request.derived_attributes:
        raise ClaimError(f"{place}: cannot handle request with derived attributes, the feature is disabled")
    for i, each in enumerate(request.selectors):
        if each.cel is None:
            raise ClaimError(f"{place}, selector #{i}: CEL expression empty (unsupported selector type?)")
    if not request.device_class_name:
        raise ClaimError(f"{place}: missing device class name (unsupported request type?)")
    of_class = classes.get(request.device_class_name)
    if of_class is None:
        missing = f'deviceclass.resource.k8s.io "{truncated(request.device_class_name)}" not found'
        raise ClaimError(f"{place}: could not retrieve device class {truncated(request.device_class_name)}: {missing}")
    if request.allocation_mode not in (ALL_DEVICES, EXACT_COUNT):
        raise ClaimError(f"{place}: unsupported count mode {truncated(request.allocation_mode)}")
    full_name = f"{parent}/{name}" if parent else name
    return CompiledRequest(
        name=name,
        parent=parent,
        full_name=full_name,
        names=(parent, full_name) if parent else (name,),
        class_name=request.device_class_name,
        selectors=(
            *_selectors(f"class {request.device_class_name}", of_class.spec.selectors),
            *_selectors(subject, request.selectors),
        ),
        request=request,
        count=0 if request.allocation_mode == ALL_DEVICES else request.count,
        every=request.allocation_mode == ALL_DEVICES,
        admin=bool(request.admin_access) and not parent,
    )


def _selectors(subject: str, selectors: Sequence[DeviceSelectorSpec]) -> list[CompiledSelector]:
    return [
        CompiledSelector(f"{subject}: selector #{i}", device_selector(each.cel.expression))
        for i, each in enumerate(selectors)
        if each.cel is not None
    ]


def _constraint(subject: str, position: int, constraint: DeviceConstraint) -> CompiledConstraint:
    attribute = constraint.match_attribute
    distinct = attribute is None
    if attribute is None:
        attribute = constraint.distinct_attribute
    if attribute is None:
        raise ClaimError(f"{subject}, constraint #{position}: empty constraint (unsupported constraint type?)")
    domain, _, name = attribute.partition("/")
    return CompiledConstraint(domain, name, distinct, frozenset(constraint.requests))


def exceeds_results(key: str, name: str, fewest: int, before: int) -> str:
    """Returns why a request is too large for its claim, or "". `before`: the devices of the requests before it."""
    if fewest <= MAX_RESULTS - before:
        return ""
    limit = f"exceeds the claim limit of {MAX_RESULTS}, with {before} already accounted for"
    return f"claim {key}, request {name}: adding {fewest} devices {limit}"
