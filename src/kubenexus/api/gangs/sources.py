"""The places where a pod may say which gang it is in, from the one that counts most to the one that counts least.

Each source answers None when the pod says nothing there, a Claim, or Malformed with the key and what it should be.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import COSCHEDULING, POD_GROUP, VOLCANO, WORKLOAD, Claim, Ref, name_of, said
from kubenexus.api.keys import gang
from kubenexus.api.keys.entry import Entry
from kubenexus.api.keys.reading import Reading

Source = Callable[[Pod], Claim | None]


def _scheduling_group(pod: Pod) -> Claim | None:
    """`spec.schedulingGroup.podGroupName`."""
    group, where = pod.spec.scheduling_group, "spec.schedulingGroup.podGroupName"
    return None if group is None else _object(pod, POD_GROUP, "podgroup", group.pod_group_name, where)


def _workload_ref(pod: Pod) -> Claim | None:
    """`spec.workloadRef`; each replica key is a gang by itself."""
    ref = pod.spec.workload_ref
    if ref is None:
        return None
    return _workload(pod, ref.name, ref.pod_group, ref.pod_group_replica_key, "spec.workloadRef")


def _workload_labels(pod: Pod) -> Claim | None:
    name, part = said(gang.WORKLOAD, pod), said(gang.WORKLOAD_POD_GROUP, pod)
    if name.value is None:
        return None
    claim = _workload(pod, name.value, part.value or "", "", name.source_key)
    return _warned(claim, name, part)


def _coscheduling(pod: Pod) -> Claim | None:
    name = said(gang.POD_GROUP, pod)
    if name.value is None:
        return None
    return _warned(_object(pod, COSCHEDULING, "scheduling.x-k8s.io", name.value, name.source_key), name)


def _own(pod: Pod) -> Claim | None:
    return _counted(pod, "gang", gang.NAME, gang.MIN_AVAILABLE)


def _kueue(pod: Pod) -> Claim | None:
    return _counted(pod, "kueue", gang.KUEUE_NAME, gang.KUEUE_TOTAL_COUNT)


def _volcano(pod: Pod) -> Claim | None:
    name = said(gang.VOLCANO_NAME, pod)
    if name.value is None:
        return None
    return _warned(_object(pod, VOLCANO, "volcano", name.value, name.source_key), name)


SOURCES: Final[tuple[Source, ...]] = (
    _scheduling_group,
    _workload_ref,
    _workload_labels,
    _coscheduling,
    _own,
    _kueue,
    _volcano,
)

# All that the sources read from labels and annotations: most pods have none of it, and that must be quick to see.
KEYS: Final[frozenset[str]] = frozenset().union(
    *(
        entry.keys
        for entry in (
            gang.WORKLOAD,
            gang.POD_GROUP,
            gang.NAME,
            gang.KUEUE_NAME,
            gang.VOLCANO_NAME,
        )
    )
)


def _counted(pod: Pod, family: str, name_entry: Entry[str | None], least_entry: Entry[int | None]) -> Claim | None:
    """The pod itself has the number. A name without a number makes no gang."""
    name = said(name_entry, pod)
    if name.value is None:
        return None
    least = said(least_entry, pod)
    if least.value is None:
        return None
    namespace, called = pod.metadata.namespace, name_of(name.value, name.source_key)
    claim = Claim(f"{namespace}/{family}/{called}", f"{namespace}/{called}", name.source_key, least.value)
    return _warned(claim, name, least)


def _object(pod: Pod, kind: str, family: str, name: str, where: str) -> Claim:
    """An object has the number."""
    namespace = pod.metadata.namespace
    ref = Ref(kind, namespace, name_of(name, where))
    return Claim(f"{namespace}/{family}/{name}", f"{namespace}/{name}", where, ref=ref)


def _workload(pod: Pod, name: str, part: str, replica: str, where: str) -> Claim:
    namespace = pod.metadata.namespace
    title = "/".join((namespace, name_of(name, where), *(name_of(each, where) for each in (part, replica) if each)))
    # The empty part keeps its place, or group and replica could be mistaken for each other.
    key = f"{namespace}/workload/{name}/{part}/{replica}"
    return Claim(key, title, where, ref=Ref(WORKLOAD, namespace, name, part))


def _warned(claim: Claim, *readings: Reading[Any]) -> Claim:
    warnings = tuple(text for each in readings for text in each.warnings)
    return msgspec.structs.replace(claim, warnings=warnings) if warnings else claim
