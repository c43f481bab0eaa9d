"""What Kueue's Workloads tell: the pods that will be asked for next, by shape, and which pods Kueue admitted.

A Workload without quota is pending: Kueue will let its pods run when others end. The pods of pending Workloads do not
exist, or have scheduling gates, so nothing else shows them.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import KUEUE_WORKLOAD
from kubenexus.api.keys import gang
from kubenexus.api.kueue import (
    ADMITTED,
    FINISHED,
    QUOTA_RESERVED,
    KueueWorkload,
    PodSet,
    admitted_counts,
    admitted_pods,
)
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.resource_names import PODS, Amounts
from kubenexus.base.errors import Malformed
from kubenexus.state.footprint import footprint_of
from kubenexus.state.pod_group_store import PodGroupStore

MAX_POD_SETS: Final = 18  # of a Workload, as Kueue allows
MAX_PENDING: Final = 50_000  # pod sets that are counted as demand; later ones are left out
MAX_UNCHECKED: Final = 10_000  # Workloads that wait for an AdmissionCheck; later ones come when they change again
MAX_PODS: Final = 10_000  # of a pod set, in the demand
_NOTHING: Final[Mapping[str, int]] = {}


class PodDemand(NamedTuple):
    """Pods that pending Workloads ask for. `amounts`: what one of them requests, in scheduler units. `together`: how
    many of them start at the same time."""

    amounts: Amounts
    together: int


class KueueWorkloads:
    """Follows Workloads. `groups` gets each of them as the object that its pods name as their gang. `demand` counts the
    pending Workloads by what they ask for; reading it costs nothing, and a change O(pod sets of the Workload)."""

    def __init__(self, groups: PodGroupStore) -> None:
        self._groups = groups
        self._pending: dict[str, tuple[PodDemand, ...]] = {}
        self._counted = 0
        self._demand: dict[PodDemand, int] = {}
        self._admitted: dict[str, Mapping[str, int]] = {}  # what the pods of admitted Workloads ask for, in sum
        self._unchecked: dict[str, None] = {}  # Workloads with quota that wait for an AdmissionCheck

    @property
    def demand(self) -> Mapping[PodDemand, int]:
        """How many pending Workloads ask for each."""
        return self._demand

    @property
    def pending(self) -> int:
        return len(self._pending)

    def set(self, workload: KueueWorkload) -> None:
        """Adds or updates a Workload."""
        self._count(workload.metadata.key, _demand(workload) if _is_pending(workload) else ())
        self._groups.seen(KUEUE_WORKLOAD, _reduced(workload))
        key = workload.metadata.key
        if amounts := _admitted_amounts(workload):
            self._admitted[key] = amounts
        else:
            self._admitted.pop(key, None)
        if not _is_unchecked(workload):
            self._unchecked.pop(key, None)
        elif len(self._unchecked) < MAX_UNCHECKED:
            self._unchecked[key] = None

    def remove(self, key: str) -> None:
        self._count(key, ())
        self._unchecked.pop(key, None)
        self._admitted.pop(key, None)
        self._groups.gone(KUEUE_WORKLOAD, key)

    def admits(self, pod: Pod) -> int:
        """Returns how many pods Kueue lets run of the Workload that the pod names; 0 if it names none that is
        admitted."""
        name = pod.metadata.annotations.get(gang.KUEUE_WORKLOAD.key)
        if name is None:
            return 0
        found = self._groups.find(KUEUE_WORKLOAD, pod.metadata.namespace, name)
        return admitted_pods(found) if isinstance(found, KueueWorkload) else 0

    def admitted_amounts(self, pod: Pod) -> Mapping[str, int]:
        """Returns how much Kueue lets the pods of the Workload use that the pod names, and their number as `pods`;
        nothing if it names none that is admitted."""
        if not self._admitted:
            return _NOTHING
        name = pod.metadata.annotations.get(gang.KUEUE_WORKLOAD.key)
        return _NOTHING if name is None else self._admitted.get(f"{pod.metadata.namespace}/{name}", _NOTHING)

    def take_unchecked(self, most: int) -> list[str]:
        """Returns the keys of Workloads that have quota and wait for an AdmissionCheck, those first that were returned
        the longest time ago."""
        keys = list(islice(self._unchecked, most))
        for key in keys:
            del self._unchecked[key]
            self._unchecked[key] = None
        return keys

    def _count(self, key: str, demand: tuple[PodDemand, ...]) -> None:
        before = self._pending.pop(key, ())
        for each in before:
            self._demand[each] -= 1
            if not self._demand[each]:
                del self._demand[each]
        self._counted -= len(before)
        if not demand or self._counted + len(demand) > MAX_PENDING:
            return
        self._pending[key] = demand
        self._counted += len(demand)
        for each in demand:
            self._demand[each] = self._demand.get(each, 0) + 1


def _is_pending(workload: KueueWorkload) -> bool:
    return workload.spec.active and not workload.has(QUOTA_RESERVED) and not workload.has(FINISHED)


def _is_unchecked(workload: KueueWorkload) -> bool:
    if not workload.has(QUOTA_RESERVED) or workload.has(ADMITTED) or workload.has(FINISHED):
        return False
    return any(each.state == "Pending" for each in workload.status.admission_checks)


def _demand(workload: KueueWorkload) -> tuple[PodDemand, ...]:
    return tuple([found for each in workload.spec.pod_sets[:MAX_POD_SETS] if (found := _of_pod_set(each)) is not None])


def _admitted_amounts(workload: KueueWorkload) -> dict[str, int]:
    """Returns what the admitted pods ask for, by their templates, which cannot change while the quota is reserved.
    Nothing is known of a template that cannot be read, so only its pods count."""
    pods = admitted_pods(workload)
    if not pods:
        return {}
    sums: dict[str, int] = {PODS: pods}
    counts = admitted_counts(workload)
    for each in workload.spec.pod_sets[:MAX_POD_SETS]:
        found = _of_pod_set(each)
        for name, amount in () if found is None else found.amounts:
            sums[name] = sums.get(name, 0) + counts.get(each.name, 0) * amount
    return sums


def _of_pod_set(pod_set: PodSet) -> PodDemand | None:
    """Returns None for a pod set without pods, or whose requests cannot be read."""
    if pod_set.template is None or pod_set.count < 1:
        return None
    try:
        amounts = footprint_of(Pod(spec=pod_set.template.spec)).amounts
    except Malformed:
        return None
    return PodDemand(amounts, min(pod_set.count, MAX_PODS))


def _reduced(workload: KueueWorkload) -> KueueWorkload:
    """Returns the Workload without its templates, which are most of its size."""
    replace, meta = msgspec.structs.replace, workload.metadata
    pod_sets = [replace(each, template=None) for each in workload.spec.pod_sets[:MAX_POD_SETS]]
    status = workload.status
    conditions = [
        replace(each, message="", last_transition_time="") for each in status.conditions if each.status == "True"
    ]
    admission = status.admission
    if admission is not None:
        assignments = [replace(each, topology_assignment=None) for each in admission.pod_set_assignments[:MAX_POD_SETS]]
        admission = replace(admission, pod_set_assignments=assignments)
    return replace(
        workload,
        metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid),
        spec=replace(workload.spec, pod_sets=pod_sets),
        status=replace(status, conditions=conditions, admission=admission, admission_checks=[]),
    )
