"""What keeps the device claims of a pod from being allocated: the request, what fails for it, and on how many nodes.

Each request is looked at alone, in the order of the checks: selectors, devices in use, taints, number. Where every
request alone finds devices, it is the constraints, or that requests need the same devices.
"""

from collections import Counter
from collections.abc import Iterator

from kubenexus.api.core import Pod
from kubenexus.base.errors import truncated
from kubenexus.framework.job import Assignment
from kubenexus.framework.object_names import claim_mark, with_names
from kubenexus.plugins.dynamic_resources.claim_requests import (
    ClaimError,
    CompiledClaim,
    CompiledRequest,
    compile_claims,
)
from kubenexus.plugins.dynamic_resources.pod_claims import pod_claims
from kubenexus.plugins.dynamic_resources.tolerations import tolerated
from kubenexus.state.claims.device import PoolDevice, cel_device
from kubenexus.state.nodes import NodeColumns

MAX_LINES = 8
_EACH = 100_000  # devices that are looked at for one explanation


def claim_section(pod: Pod, columns: NodeColumns) -> tuple[str, ...]:
    """Returns a sentence for each thing that fails, the most frequent first; none for a pod without such claims."""
    found = pod_claims(pod, columns.claims)
    if found is None or found.problem or not found.wanted:
        return ()
    specs = [(claim_mark(each.position), columns.claims.specs.get(each.spec)) for each in found.wanted]
    try:
        claims = compile_claims([(key, spec) for key, spec in specs if spec is not None], columns.claims.classes)
    except ClaimError as error:
        return (with_names(str(error), pod),)
    counts: Counter[str] = Counter()
    left = _EACH
    for name, row in columns.row_of.items():
        pools = columns.claims.pools(name, columns.labels.of_row(row))
        usable = [pool for pool in pools if pool.usable]
        devices = [(pool.id, device) for pool in usable for each in pool.slices for device in each.devices]
        left -= len(devices)
        if left < 0:
            break
        counts.update(_failures(claims, devices, columns))
    lines = [f"{with_names(text, pod)}: {number} nodes" for text, number in counts.most_common(MAX_LINES)]
    return tuple(lines)


def claimed_text(assignment: Assignment) -> str:
    """Returns the devices that the claims of a pod get."""
    results = [each for choice in assignment.claims for each in choice.allocation.devices.results]
    return ", ".join(
        f"{truncated(each.device)} ({truncated(each.driver)}, pool {truncated(each.pool)})" for each in results
    )


def _failures(
    claims: tuple[CompiledClaim, ...], devices: list[tuple[tuple[str, str], PoolDevice]], columns: NodeColumns
) -> Iterator[str]:
    """Yields what fails on one node."""
    alone = True
    for claim in claims:
        for alternatives in claim.requests:
            failures = [_failure(request, devices, columns) for request in alternatives]
            if all(failures):
                alone = False
                place = f"claim {claim.key}, request {alternatives[0].parent or alternatives[0].name}"
                yield f"{place}: {failures[0]}"
    if alone and (len(claims) > 1 or any(len(claim.requests) > 1 or claim.constraints for claim in claims)):
        constrained = [claim for claim in claims if claim.constraints]
        for claim in constrained:
            named = ", ".join(truncated(f"{each.domain}/{each.name}") for each in claim.constraints)
            yield f"claim {claim.key}: each request finds devices, but maybe not with the constraint on {named}"


def _failure(request: CompiledRequest, devices: list[tuple[tuple[str, str], PoolDevice]], columns: NodeColumns) -> str:
    """Returns why a request finds too few devices on a node, or ""."""
    left = devices
    for each in request.selectors:
        if each.selector.problem:
            return f"{each.subject}: {each.selector.problem}"
        matches, reads = each.selector.matches, each.selector.reads
        left = [(pool, device) for pool, device in left if matches(cel_device(device, pool[0], reads)) is True]
        if len(left) < max(request.count, 1):
            return f"{each.subject} matches {len(left)} devices"
    allocated = columns.claims.allocated
    free = [(pool, device) for pool, device in left if request.admin or not allocated.is_whole((*pool, device.name))]
    if len(free) < max(request.count, 1):
        return f"{len(left)} devices match, {len(free)} of them are free"
    clean = [device for _, device in free if tolerated(device.traits.taints, request.request.tolerations)]
    if len(clean) < max(request.count, 1):
        return f"{len(free)} devices are free, {len(clean)} of them without a taint that is not tolerated"
    return ""
