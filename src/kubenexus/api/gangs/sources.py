"""The sources of a pod's gang declaration, by falling precedence.

Each source returns a GangDeclaration, or None if the pod does not use it. It raises Malformed with the key and what was
expected.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import (
    COSCHEDULING,
    KUEUE_WORKLOAD,
    POD_GROUP,
    VOLCANO,
    WORKLOAD,
    GangDeclaration,
    GroupRef,
    require_key,
    validated_name,
)
from kubenexus.api.gangs.job_key import gang_key
from kubenexus.api.keys import gang
from kubenexus.api.keys.entry import KeyEntry
from kubenexus.api.keys.reading import KeyReading

KUEUE: Final = "kueue"  # the family of gangs that Kueue knows
Source = Callable[[Pod], GangDeclaration | None]


def _scheduling_group(pod: Pod) -> GangDeclaration | None:
    """Reads `spec.schedulingGroup.podGroupName`."""
    group, where = pod.spec.scheduling_group, "spec.schedulingGroup.podGroupName"
    return None if group is None else _object(pod, POD_GROUP, "podgroup", group.pod_group_name, where)


def _workload_ref(pod: Pod) -> GangDeclaration | None:
    """Reads `spec.workloadRef`. Each replica key is a gang by itself."""
    ref = pod.spec.workload_ref
    if ref is None:
        return None
    return _workload(pod, ref.name, ref.pod_group, ref.pod_group_replica_key, "spec.workloadRef")


def _workload_labels(pod: Pod) -> GangDeclaration | None:
    name, part = require_key(gang.WORKLOAD, pod), require_key(gang.WORKLOAD_POD_GROUP, pod)
    if name.value is None:
        return None
    claim = _workload(pod, name.value, part.value or "", "", name.source_key)
    return _warned(claim, name, part)


def _coscheduling(pod: Pod) -> GangDeclaration | None:
    name = require_key(gang.POD_GROUP, pod)
    if name.value is None:
        return None
    return _warned(_object(pod, COSCHEDULING, "scheduling.x-k8s.io", name.value, name.source_key), name)


def _own(pod: Pod) -> GangDeclaration | None:
    return _counted(pod, "gang", gang.NAME, gang.MIN_AVAILABLE)


def _kueue(pod: Pod) -> GangDeclaration | None:
    """Reads the group of plain pods. Once Kueue has admitted it, its Workload has the minimum."""
    if require_key(gang.KUEUE_SERVING, pod).value:
        return None
    claim, admitted = _counted(pod, KUEUE, gang.KUEUE_NAME, gang.KUEUE_TOTAL_COUNT), kueue_workload(pod)
    if claim is None or admitted is None or claim.key != admitted.key:
        return claim
    return msgspec.structs.replace(claim, ref=admitted.ref)


def _volcano(pod: Pod) -> GangDeclaration | None:
    name = require_key(gang.VOLCANO_NAME, pod)
    if name.value is None:
        return None
    return _warned(_object(pod, VOLCANO, "volcano", name.value, name.source_key), name)


def kueue_workload(pod: Pod) -> GangDeclaration | None:
    """Reads which Kueue Workload the pod is of. It counts only for pods that declare no gang themselves, so it is none
    of `SOURCES`. A Workload of plain pods has the name of their group, so both are the same gang."""
    name = pod.metadata.annotations.get(gang.KUEUE_WORKLOAD.key)
    if name is None or gang.KUEUE_SLICE.key in pod.metadata.annotations:
        return None
    if require_key(gang.KUEUE_SERVING, pod).value:
        return None
    return _object(pod, KUEUE_WORKLOAD, KUEUE, name, gang.KUEUE_WORKLOAD.key)


SOURCES: Final[tuple[Source, ...]] = (
    _scheduling_group,
    _workload_ref,
    _workload_labels,
    _coscheduling,
    _own,
    _kueue,
    _volcano,
)

# All keys that the sources read: most pods have none of them, and that check must be fast.
KEYS: Final[frozenset[str]] = frozenset().union(
    *(
        entry.keys
        for entry in (
            gang.WORKLOAD,
            gang.POD_GROUP,
            gang.NAME,
            gang.KUEUE_NAME,
            gang.VOLCANO_NAME,
            gang.KUEUE_WORKLOAD,
        )
    )
)


def _counted(
    pod: Pod, family: str, name_entry: KeyEntry[str | None], least_entry: KeyEntry[int | None]
) -> GangDeclaration | None:
    """Declares a gang whose minimum is on the pod. A name without a minimum makes no gang."""
    name = require_key(name_entry, pod)
    if name.value is None:
        return None
    least = require_key(least_entry, pod)
    if least.value is None:
        return None
    namespace, called = pod.metadata.namespace, validated_name(name.value, name.source_key)
    claim = GangDeclaration(gang_key(namespace, family, called), f"{namespace}/{called}", name.source_key, least.value)
    return _warned(claim, name, least)


def _object(pod: Pod, kind: str, family: str, name: str, where: str) -> GangDeclaration:
    """Declares a gang whose minimum is in an object."""
    namespace = pod.metadata.namespace
    ref = GroupRef(kind, namespace, validated_name(name, where))
    return GangDeclaration(gang_key(namespace, family, name), f"{namespace}/{name}", where, ref=ref)


def _workload(pod: Pod, name: str, part: str, replica: str, where: str) -> GangDeclaration:
    namespace = pod.metadata.namespace
    title = "/".join(
        (namespace, validated_name(name, where), *(validated_name(each, where) for each in (part, replica) if each))
    )
    key = gang_key(namespace, "workload", name, part, replica)
    return GangDeclaration(key, title, where, ref=GroupRef(WORKLOAD, namespace, name, part))


def _warned(claim: GangDeclaration, *readings: KeyReading[Any]) -> GangDeclaration:
    warnings = tuple(text for each in readings for text in each.warnings)
    return msgspec.structs.replace(claim, warnings=warnings) if warnings else claim
