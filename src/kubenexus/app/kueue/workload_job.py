"""The gang that a Kueue Workload will be: its pods as Kueue will make them, once it admits the Workload.

Kueue adds to each pod set the labels and tolerations of the flavors that it assigned, and to each pod the topology
domain, if it assigned domains. Pure functions.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import msgspec

from kubenexus.api.core import Pod, PodSpec
from kubenexus.api.gangs.job_key import gang_key
from kubenexus.api.gangs.sources import KUEUE
from kubenexus.api.gangs.topology_request import topology_request_of
from kubenexus.api.keys import gang
from kubenexus.api.kueue import (
    AssignmentSlice,
    KueueWorkload,
    PodSet,
    PodSetAssignment,
    ResourceFlavor,
    TopologyAssignment,
)
from kubenexus.api.meta import ObjectMeta
from kubenexus.base.errors import Malformed
from kubenexus.framework.job import Job
from kubenexus.queue.gangs.gang_jobs import MAX_MEMBERS

replace = msgspec.structs.replace
_NOT_YET: Final = "its quota is not reserved"


def workload_job(workload: KueueWorkload, flavors: Mapping[str, ResourceFlavor]) -> Job:
    """Returns the gang of a Workload whose quota is reserved. Raises Malformed with the reason why there is none."""
    admission = workload.status.admission
    if admission is None:
        raise Malformed(_NOT_YET)
    sets = {each.name: each for each in workload.spec.pod_sets}
    pods: list[Pod] = []
    for assignment in admission.pod_set_assignments:
        pod_set = sets.get(assignment.name)
        if pod_set is None or pod_set.template is None:
            raise Malformed(f"pod set {assignment.name} has no template")
        pods += islice(_pods(workload, pod_set, assignment, flavors), MAX_MEMBERS + 1 - len(pods))
        if len(pods) > MAX_MEMBERS:
            raise Malformed(f"it has more than {MAX_MEMBERS} pods, which is the limit")
    if not pods:
        raise Malformed("it has no pods")
    meta = workload.metadata
    key = gang_key(meta.namespace, KUEUE, meta.name)
    return Job(key, tuple(pods), len(pods), topology_request_of(pods[0]))


def _pods(
    workload: KueueWorkload, pod_set: PodSet, assignment: PodSetAssignment, flavors: Mapping[str, ResourceFlavor]
) -> Iterator[Pod]:
    template = pod_set.template
    assert template is not None
    meta, spec = workload.metadata, _with_flavors(template.spec, assignment, flavors)
    if workload.spec.priority is not None:
        spec = replace(spec, priority=workload.spec.priority)
    notes = {**template.metadata.annotations, gang.KUEUE_WORKLOAD.key: meta.name}
    count = pod_set.count if assignment.count is None else assignment.count
    domains = _selectors(assignment.topology_assignment)
    for index in range(count):
        domain = next(domains, None)
        name = f"{meta.name}-{pod_set.name}-{index}"
        yield Pod(
            metadata=ObjectMeta(
                name=name,
                namespace=meta.namespace,
                uid=f"{meta.uid}/{name}",
                labels=template.metadata.labels,
                annotations=notes,
            ),
            spec=spec if domain is None else replace(spec, node_selector={**spec.node_selector, **domain}),
        )


def _with_flavors(spec: PodSpec, assignment: PodSetAssignment, flavors: Mapping[str, ResourceFlavor]) -> PodSpec:
    selector, tolerations = dict(spec.node_selector), list(spec.tolerations)
    for name in dict.fromkeys(assignment.flavors.values()):
        flavor = flavors.get(name)
        if flavor is None:
            raise Malformed(f"the ResourceFlavor {name} does not exist")
        selector.update(flavor.spec.node_labels)
        tolerations += [each for each in flavor.spec.tolerations if each not in tolerations]
    return replace(spec, node_selector=selector, tolerations=tolerations, scheduling_gates=[], node_name="")


# --- topology --------------------------------------------------------------------------------------------------------


def _selectors(assignment: TopologyAssignment | None) -> Iterator[Mapping[str, str]]:
    """Yields the node selector of each pod, domain after domain; nothing without an assignment."""
    if assignment is None:
        return
    for values, count in assigned_domains(assignment):
        selector = dict(zip(assignment.levels, values, strict=False))
        for _ in range(count):
            yield selector


def assigned_domains(assignment: TopologyAssignment) -> Iterator[tuple[list[str], int]]:
    """Yields the values of each assigned domain, one for each level, and how many pods go there."""
    for domain in assignment.domains:
        yield domain.values, _with_pods(domain.count)
    for part in assignment.slices:
        for index in range(part.domain_count):
            yield _values(part, index), _with_pods(_count(part, index))


def _with_pods(count: int) -> int:
    """Returns the count. Domains without pods would be gone through for as long as a status says."""
    if count < 1:
        raise Malformed("its topology assignment has a domain without pods")
    return count


def _values(part: AssignmentSlice, index: int) -> list[str]:
    """Returns the values of one domain. Equal prefixes, suffixes and values are written once."""
    found = []
    for level in part.values_per_level:
        own = level.individual
        if level.universal is not None:
            found.append(level.universal)
        elif index < len(own.roots):
            found.append(f"{own.prefix}{own.roots[index]}{own.suffix}")
        else:
            raise Malformed("its topology assignment has fewer values than domains")
    return found


def _count(part: AssignmentSlice, index: int) -> int:
    counts = part.pod_counts
    if counts.universal is not None:
        return counts.universal
    return counts.individual[index] if index < len(counts.individual) else 0
