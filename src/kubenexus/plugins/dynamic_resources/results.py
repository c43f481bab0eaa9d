"""Turns choices of the allocator into the allocation that is written into a claim's status."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kubenexus.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, QuantityText
from kubenexus.api.devices.resource_claim import (
    AllocatedConfiguration,
    AllocationResult,
    DeviceAllocation,
    DeviceAllocations,
    DeviceClass,
)
from kubenexus.api.node_selectors import NAME_FIELD
from kubenexus.plugins.dynamic_resources.allocator import Choice, Found
from kubenexus.plugins.dynamic_resources.candidates import Candidate
from kubenexus.plugins.dynamic_resources.claim_requests import ClaimError, CompiledClaim, CompiledRequest

# What `_configuration` found, by the claim's position and the alternatives that were taken. The classes stay the same.
Configurations: TypeAlias = dict[tuple[int, Sequence[int]], list[AllocatedConfiguration]]
SHARE = "share"  # stands for the ID of a share until the claim is known (`state.claims.store.with_share_ids`)


def allocations(
    claims: Sequence[CompiledClaim],
    found: Found,
    candidates: Mapping[int, Candidate],
    classes: Mapping[str, DeviceClass],
    node: str,
    known: Configurations,
) -> list[AllocationResult]:
    """Returns the allocation of each claim. `candidates` are those that were chosen, by position. `known` keeps what is
    the same for all nodes. Raises ClaimError."""
    made = []
    for i, claim in enumerate(claims):
        choices, taken = found.choices[i], found.alternatives[i]
        config = known.get((i, taken))
        if config is None:
            config = known[i, taken] = _configuration(claim, taken, classes)
        devices, results = [], []
        for each in choices:
            device = candidates[each.candidate]
            devices.append(device)
            results.append(_result(each, device))
        selector = _node_selector(devices, claim, node)
        made.append(AllocationResult(devices=DeviceAllocations(results=results, config=config), node_selector=selector))
    return made


def _result(choice: Choice, candidate: Candidate) -> DeviceAllocation:
    traits, (driver, pool, device) = candidate.device.traits, candidate.id
    consumed: dict[str, QuantityText] | None = None
    if choice.consumed:
        consumed = {name: amount.canonical() for name, amount in choice.consumed.items()}
    conditions, failures = traits.binding_conditions, traits.binding_failure_conditions
    return DeviceAllocation(
        request=choice.request.full_name,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=True if choice.request.admin else None,
        tolerations=choice.request.request.tolerations,
        binding_conditions=None if conditions is None else list(conditions),
        binding_failure_conditions=None if failures is None else list(failures),
        share_id=None if choice.consumed is None else SHARE,
        consumed_capacity=consumed,
    )


def _configuration(
    claim: CompiledClaim, taken: Sequence[int], classes: Mapping[str, DeviceClass]
) -> list[AllocatedConfiguration]:
    """Returns the parameters of the classes, each class once, then those of the claim."""
    requests = [alternatives[i] for alternatives, i in zip(claim.requests, taken, strict=True)]
    of_class: dict[str, list[str]] = {}
    for each in requests:
        of_class.setdefault(each.class_name, []).append(each.full_name)
    found = [
        AllocatedConfiguration(source="FromClass", requests=list(names), opaque=each.opaque)
        for name, names in of_class.items()
        for each in (classes[name].spec.config if name in classes else ())
    ]
    chosen = {name for each in requests for name in each.names}
    found += [
        AllocatedConfiguration(source="FromClaim", requests=each.requests, opaque=each.opaque)
        for each in claim.spec.devices.config
        if not each.requests or not chosen.isdisjoint(each.requests)
    ]
    return [_for_all(each, requests) for each in found]


def _for_all(found: AllocatedConfiguration, requests: Sequence[CompiledRequest]) -> AllocatedConfiguration:
    """Without names parameters are for all requests: those that name all of them lose the names."""
    named = set(found.requests)
    if not named or not all(not named.isdisjoint(each.names) for each in requests):
        return found
    return AllocatedConfiguration(source=found.source, opaque=found.opaque)


def _node_selector(devices: Sequence[Candidate], claim: CompiledClaim, node: str) -> NodeSelector | None:
    """Returns the nodes on which all devices are available, or None for all nodes."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for each in devices:
        selection = each.slice.selection or each.device.traits.selection
        if selection.name or each.device.traits.binds_to_node:
            only = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=[node])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[only])])
        terms = [] if selection.selector is None else selection.selector.node_selector_terms
        if len(terms) > 1:
            problem = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise ClaimError(f"create NodeSelector for claim {claim.key}: {problem}")
        for term in terms:
            fields += (wanted for wanted in term.match_fields if not _has(fields, wanted))
            labels += (wanted for wanted in term.match_expressions if not _has(labels, wanted))
    if not fields and not labels:
        return None
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=labels, match_fields=fields)])


def _has(known: Sequence[NodeSelectorRequirement], wanted: NodeSelectorRequirement) -> bool:
    return any(
        (each.key, each.operator, set(each.values)) == (wanted.key, wanted.operator, set(wanted.values))
        for each in known
    )
