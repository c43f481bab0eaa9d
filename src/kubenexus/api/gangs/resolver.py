"""Resolves the gang of a pod and its minimum, for all parts of the program.

    is_gang_member(pod)             whether the pod declares a gang at all
    declared_gang(pod)              the pod's own declaration, by the first source that it uses (`sources`)
    resolve_gang(claim, groups)     the gang, with the minimum of the object that the declaration names, if any

All functions are pure. A gang is within one namespace; equal names in two namespaces are two gangs.
"""

import functools
from collections.abc import Iterable
from typing import Final, Protocol

import msgspec

from kubenexus.api.core import Pod, PodSpec, SchedulingGroup, WorkloadRef
from kubenexus.api.gangs.declaration import (
    COSCHEDULING,
    KUEUE_WORKLOAD,
    VOLCANO,
    GangDeclaration,
    GroupRef,
    TopologyRequest,
)
from kubenexus.api.gangs.sources import KEYS, SOURCES, Source, kueue_workload
from kubenexus.api.gangs.topology_request import topology_request_of
from kubenexus.api.keys import gang as keys
from kubenexus.api.keys import network
from kubenexus.api.keys.reading import read_key
from kubenexus.api.kueue import KueueWorkload, admitted_pods
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import (
    DisruptionMode,
    PodGroup,
    SchedulingConstraints,
    SchedulingPolicy,
    Workload,
    WorkloadPodGroup,
)
from kubenexus.base.errors import Malformed

Texts = tuple[tuple[str, str], ...]
GroupObject = PodGroup | Workload | KueueWorkload  # what a pod may name as its gang

_MAX_KEPT: Final = 256  # characters of a value: more than any valid one has
_MAX_TEXT: Final = 4096  # characters of the annotations of a declaration that is remembered
_READ: Final = frozenset[str]().union(
    *(entry.keys for part in (keys.SECTION, network.SECTION) for entry in part.entries)
)
_DECLARING: Final = KEYS.union(keys.WORKLOAD_POD_GROUP.keys, keys.MIN_AVAILABLE.keys, keys.KUEUE_TOTAL_COUNT.keys)


class GroupLookup(Protocol):
    """A lookup of the objects that pods name: `state.pod_group_store`, or a test's."""

    def find(self, kind: str, namespace: str, name: str) -> GroupObject | None: ...

    def problem(self, kind: str, namespace: str, name: str) -> Malformed | None: ...

    def listable(self, kind: str) -> bool: ...


class Gang(msgspec.Struct, frozen=True, gc=False):
    """A resolved gang. `missing_object` is what the gang waits for: the object to appear, or its kind to be listable.
    Until then the minimum has no meaning."""

    key: str
    title: str
    minimum: int
    topology: TopologyRequest
    missing_object: str = ""

    @property
    def is_trivial(self) -> bool:
        """Whether its members are scheduled one by one: one is enough, and they need not be close to each other."""
        return (
            not self.missing_object and self.minimum <= 1 and not self.topology.required and not self.topology.preferred
        )


def is_gang_member(pod: Pod) -> bool:
    """Returns whether the pod declares a gang. A declaration that cannot be read counts as one.

    For plugins, which sign each pod: 2 µs for a member of a gang that was seen before, where `declared_gang` takes 28.
    """
    meta, spec = pod.metadata, pod.spec
    if spec.scheduling_group is not None or spec.workload_ref is not None:
        return True
    return not _names_no_gang(pod) and _declares_gang(_stated(meta.labels), _stated(meta.annotations))


def declared_gang(pod: Pod) -> GangDeclaration | None:
    """Returns the declaration of the first source that the pod uses, or None. Differing sources become warnings. It is
    remembered for the other members: 4 us instead of 30."""
    if _names_no_gang(pod):
        return None
    meta, spec = pod.metadata, pod.spec
    labels, annotations = _read_texts(meta.labels), _read_texts(meta.annotations)
    if sum([len(text) for _, text in annotations]) > _MAX_TEXT:  # a label has 63 characters at most
        return _declaration(pod)
    return _remembered(meta.namespace, labels, annotations, spec.scheduling_group, spec.workload_ref)


def _read_texts(texts: dict[str, str]) -> Texts:
    return tuple([each for each in texts.items() if each[0] in _READ])


@functools.lru_cache(maxsize=1024)
def _remembered(
    namespace: str,
    labels: Texts,
    annotations: Texts,
    group: SchedulingGroup | None,
    workload: WorkloadRef | None,
) -> GangDeclaration | None:
    meta = ObjectMeta(namespace=namespace, labels=dict(labels), annotations=dict(annotations))
    return _declaration(Pod(metadata=meta, spec=PodSpec(scheduling_group=group, workload_ref=workload)))


def _declaration(pod: Pod) -> GangDeclaration | None:
    meta = pod.metadata
    claim, warnings = None, []
    for source in SOURCES:
        if claim is None:
            claim = source(pod)
        else:
            warnings += _objections(claim, source, pod)
    if claim is None:
        claim = kueue_workload(pod)
    if claim is None:
        return None
    return msgspec.structs.replace(
        claim,
        topology=topology_request_of(pod),
        warnings=(*claim.warnings, *warnings),
        completion_timeout=read_key(keys.TIMEOUT, meta.labels, meta.annotations).value,
    )


def resolve_gang(claim: GangDeclaration, groups: GroupLookup) -> Gang:
    """Returns the gang of a declaration. Raises Malformed if the object that the pod names cannot be used."""
    if claim.ref is None:
        return Gang(claim.key, claim.display_name, claim.minimum, claim.topology)
    ref = claim.ref
    found = groups.find(ref.kind, ref.namespace, ref.name)
    if found is None and ref.kind == KUEUE_WORKLOAD and not groups.listable(ref.kind):
        return Gang(claim.key, claim.display_name, max(1, claim.minimum), claim.topology)  # Kueue is gone
    if found is None:
        if problem := groups.problem(ref.kind, ref.namespace, ref.name):
            raise problem.within(subject=str(ref))
        awaits = f"{ref} to appear" if groups.listable(ref.kind) else f"{ref.kinds}, which cannot be listed"
        return Gang(claim.key, claim.display_name, 1, claim.topology, awaits)
    if isinstance(found, KueueWorkload) and not admitted_pods(found):
        return Gang(claim.key, claim.display_name, 1, claim.topology, f"Kueue to admit {ref}")
    try:
        minimum, required = _asked(ref, found)
    except Malformed as problem:
        raise problem.within(subject=str(ref)) from None
    nearness = TopologyRequest(required, claim.topology.preferred, explicit=True) if required else claim.topology
    return Gang(claim.key, claim.display_name, minimum, nearness)


def merge_gangs(gangs: Iterable[Gang]) -> Gang:
    """Returns one gang for the gangs of its members, in their order. The largest minimum counts, since a smaller one
    might be too few for some members. Of the topology levels the first named ones count."""
    first, *others = gangs
    for gang in others:
        near = TopologyRequest(
            first.topology.required or gang.topology.required,
            first.topology.preferred or gang.topology.preferred,
            first.topology.explicit or gang.topology.explicit,
        )
        minimum = max(first.minimum, gang.minimum)
        first = Gang(first.key, first.title, minimum, near, first.missing_object or gang.missing_object)
    return first


def _stated(texts: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple([(key, texts[key][:_MAX_KEPT]) for key in texts if key in _DECLARING])


@functools.lru_cache(maxsize=1024)
def _declares_gang(labels: tuple[tuple[str, str], ...], annotations: tuple[tuple[str, str], ...]) -> bool:
    pod = Pod(metadata=ObjectMeta(labels=dict(labels), annotations=dict(annotations)))
    try:
        return any(source(pod) is not None for source in SOURCES)
    except Malformed:
        return True


def _names_no_gang(pod: Pod) -> bool:
    meta, spec = pod.metadata, pod.spec
    named = spec.scheduling_group is not None or spec.workload_ref is not None
    return not named and KEYS.isdisjoint(meta.labels) and KEYS.isdisjoint(meta.annotations)


def _objections(claim: GangDeclaration, source: Source, pod: Pod) -> list[str]:
    try:
        other = source(pod)
    except Malformed as problem:
        return [f"{claim.source} is used; besides it {problem}"]
    if other is None or (
        other.display_name == claim.display_name and other.minimum in (0, claim.minimum or other.minimum)
    ):
        return []
    count = f", at least {other.minimum}" if other.minimum else ""
    return [f"{claim.source} is used; {other.source} says otherwise: gang {other.display_name}{count}"]


def gang_terms(found: GroupObject) -> object:
    """Returns what a gang depends on of an object: while it is equal, so is the gang."""
    return admitted_pods(found) if isinstance(found, KueueWorkload) else found.spec


def minimum_of(ref: GroupRef, found: GroupObject) -> int:
    """Returns the minimum that an object states. Raises Malformed."""
    return _asked(ref, found)[0]


def disruption_of(ref: GroupRef, found: GroupObject) -> DisruptionMode:
    """Returns how pods of a group may be evicted. Raises Malformed if a Workload has no such group."""
    if isinstance(found, KueueWorkload):
        return DisruptionMode()
    stated = _part(ref, found).disruption_mode if isinstance(found, Workload) else found.spec.disruption_mode
    return stated or DisruptionMode()


# --- the objects ----------------------------------------------------------------------------------------------------


def _asked(ref: GroupRef, found: GroupObject) -> tuple[int, str]:
    """Returns the minimum, and the level within one domain of which the members must be."""
    if isinstance(found, KueueWorkload):
        return max(1, admitted_pods(found)), ""
    if isinstance(found, Workload):
        part = _part(ref, found)
        return _minimum(part.scheduling_policy or part.policy), _level(part.scheduling_constraints)
    spec = found.spec
    if ref.kind == COSCHEDULING:
        return _positive(spec.min_member or 0, "spec.minMember"), ""
    if ref.kind == VOLCANO:
        return _positive(1 if spec.min_member is None else spec.min_member, "spec.minMember"), ""
    return _minimum(spec.scheduling_policy, "spec."), _level(spec.scheduling_constraints)


def _minimum(policy: SchedulingPolicy | None, path: str = "") -> int:
    """Returns the minimum of a gang policy, else 1."""
    if policy is None or policy.gang is None:
        return 1
    return _positive(policy.gang.min_count, f"{path}schedulingPolicy.gang.minCount")


def _positive(count: int, field: str) -> int:
    if not 1 <= count < 2**31:
        raise Malformed(f"must be a whole number from 1, not {count}", field=field)
    return count


def _level(constraints: SchedulingConstraints | None) -> str:
    """Returns the key of the first constraint, or "". Kubernetes allows one constraint."""
    return next((each.key for each in constraints.topology if each.key), "") if constraints is not None else ""


def _part(ref: GroupRef, workload: Workload) -> WorkloadPodGroup:
    parts = {each.name: each for each in (*workload.spec.pod_groups, *workload.spec.pod_group_templates)}
    if not ref.part and len(parts) == 1:
        return next(iter(parts.values()))
    if ref.part not in parts:
        has = ", ".join(parts) or "none"
        raise Malformed(f"has no pod group {ref.part!r}; it has {has}", field="spec.podGroups")
    return parts[ref.part]
