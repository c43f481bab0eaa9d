"""Changes objects that ask for it: gang labels, the scheduler's name, a preference for GPUs. Pure.

Each change is opt-in, and what the object states itself is never replaced: to apply a change twice changes nothing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kubenexus.api.keys import gang, gpu, read_key, tenant
from kubenexus.base.errors import Malformed
from kubenexus.webhook.admission import ALLOWED, AdmissionRequest, Object, PatchOperation, Response, items, part, text
from kubenexus.webhook.gang_check import gang_of
from kubenexus.webhook.json_patch import CannotPatch, append_item, set_entries
from kubenexus.webhook.pod_sets import MAX_POD_SETS, PodSet, pod_sets
from kubenexus.webhook.spark import driver_annotations

DEFAULT_SCHEDULER: Final = "default-scheduler"  # the API server writes it into pods that name none
DEFAULT_CLASSES: Final = {"gold": ("h100",), "silver": ("a100",), "bronze": ("l4",)}
_MAX_LABEL: Final = 63
_GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/", "nvidia.com/mig-", "intel.com/gpu")
_MAX_CONTAINERS: Final = 256
_PREFERRED: Final = ("spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")

Labels = Mapping[str, str]


class GpuClassSettings(msgspec.Struct, frozen=True):
    """The GPU classes of each tier, the first ones most preferred; with `required` pods go to no others."""

    classes: Mapping[str, Sequence[str]] = msgspec.field(default_factory=lambda: dict(DEFAULT_CLASSES))
    required: bool = False


def mutate_gang(request: AdmissionRequest, scheduler_name: str = "") -> Response:
    """Makes the pods of a new job a gang if its annotation asks for it: the name of the job, and as many pods as start
    together. `scheduler_name`, if given, is put into templates that name no scheduler."""
    data = request.object
    if request.operation != "CREATE" or not isinstance(data, dict) or request.kind.kind not in gang.INJECT.on:
        return ALLOWED
    annotations = {key: each for key, each in part(data, "metadata", "annotations").items() if isinstance(each, str)}
    if not read_key(gang.INJECT, {}, annotations).value:
        return ALLOWED
    sets = pod_sets(request.kind.group, request.kind.kind, data)
    if len(sets) > MAX_POD_SETS:
        return Response(warnings=(f"no gang labels: more than {MAX_POD_SETS} pod templates",))
    members = [each for each in sets if each.gang is not None]
    try:
        if any(_declares(each, request.namespace or "") for each in sets):
            return ALLOWED
        patch = [operation for each in _gangs(members).items() for operation in _labelled(request, data, *each)]
        patch += [operation for each in sets for operation in _scheduled(data, each, scheduler_name)]
        patch += _driver(data, request.kind.kind)
    except CannotPatch:
        return ALLOWED
    return Response(patch=tuple(patch))


def mutate_scheduler_name(request: AdmissionRequest, namespace: Labels) -> Response:
    """Puts the scheduler that the namespace's label names into a new pod that names none."""
    data = request.object
    name = read_key(tenant.SCHEDULER_NAME, namespace, {}).value
    if request.operation != "CREATE" or request.kind.kind != "Pod" or not isinstance(data, dict) or not name:
        return ALLOWED
    if text(data, "spec", "nodeName"):  # of a DaemonSet of old, or a static pod
        return ALLOWED
    try:
        return Response(patch=tuple(_scheduled(data, pod_sets("", "Pod", data)[0], name)))
    except CannotPatch:
        return ALLOWED


def mutate_gpu_class(request: AdmissionRequest, namespace: Labels, settings: GpuClassSettings) -> Response:
    """Makes a new pod with GPUs prefer the GPU class of its tenant's tier. A pod that names a class keeps it."""
    data = request.object
    if request.operation != "CREATE" or request.kind.kind != "Pod" or not isinstance(data, dict):
        return ALLOWED
    if tenant.TIER.keys.isdisjoint(namespace) or not _asks_for_gpus(data) or _names_class(data):
        return ALLOWED
    classes = list(settings.classes.get(_tier(data, namespace), ()))
    if not classes:
        return ALLOWED
    try:
        if settings.required and len(classes) == 1:
            return Response(patch=tuple(set_entries(data, ("spec", "nodeSelector"), {gpu.CLASS.key: classes[0]})))
        term = {"matchExpressions": [{"key": gpu.CLASS.key, "operator": "In", "values": classes}]}
        if settings.required:
            return Response(patch=tuple(_required(data, term)))
        return Response(patch=tuple(append_item(data, _PREFERRED, {"weight": 50, "preference": term})))
    except CannotPatch:
        return ALLOWED


def gang_name(kind: str, name: str, gang_part: str = "") -> str:
    """Returns the name of a job's gang: `job.train`. It fits into a label; two kinds of one name are two gangs."""
    full = ".".join(each for each in (kind.lower(), name, gang_part) if each)
    if len(full) <= _MAX_LABEL and full[-1].isalnum():
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:10]
    return f"{full[: _MAX_LABEL - 11]}-{digest}"


def _declares(pods: PodSet, namespace: str) -> bool:
    """Whether pods of a template belong to a gang, or try to."""
    try:
        declared = gang_of(pods, namespace)
    except Malformed:
        return True
    return declared is not None or read_key(gang.NAME, pods.labels, pods.annotations).is_set


def _gangs(members: Sequence[PodSet]) -> dict[str, list[PodSet]]:
    found: dict[str, list[PodSet]] = {}
    for each in members:
        found.setdefault(each.gang or "", []).append(each)
    return found


def _labelled(request: AdmissionRequest, data: Object, which: str, pods: list[PodSet]) -> list[PatchOperation]:
    minimum = sum(each.least for each in pods)
    if minimum < 1:
        return []
    # A name that the API server has yet to generate is not known here.
    name = text(data, "metadata", "name") or text(data, "metadata", "generateName") + request.uid[:8]
    labels = {gang.NAME.key: gang_name(request.kind.kind, name, which), gang.MIN_AVAILABLE.key: str(minimum)}
    return [operation for each in pods for operation in set_entries(data, (*each.meta, "labels"), labels)]


def _scheduled(data: Object, pods: PodSet, name: str) -> list[PatchOperation]:
    named = pods.spec.get("schedulerName")
    if not name or named not in (None, "", DEFAULT_SCHEDULER) or named == name:
        return []
    return set_entries(data, pods.spec_path, {"schedulerName": name}) if pods.spec else []


def _driver(data: Object, kind: str) -> list[PatchOperation]:
    if kind != "SparkApplication":
        return []
    stated = part(data, "spec", "driver", "annotations")
    added = {key: each for key, each in driver_annotations(data).items() if key not in stated}
    return set_entries(data, ("spec", "driver", "annotations"), added) if added else []


def _tier(data: Object, namespace: Labels) -> str:
    """Returns the tier of a pod: the namespace's, or a lower one that the pod names."""
    of_tenant = str(read_key(tenant.TIER, namespace, {}).value)
    meta = [
        {key: each for key, each in part(data, "metadata", field).items() if isinstance(each, str)}
        for field in ("labels", "annotations")
    ]
    own = read_key(tenant.POD_TIER, *meta).value
    return max((of_tenant, own or of_tenant), key=tenant.TIERS.index)


def _asks_for_gpus(data: Object) -> bool:
    for field in ("containers", "initContainers"):
        for container in items(data, "spec", field)[:_MAX_CONTAINERS]:
            for kind in ("requests", "limits"):
                for name, amount in part(container, "resources", kind).items():
                    if name.startswith(_GPU_RESOURCES) and amount not in (0, "0"):
                        return True
    return False


def _names_class(data: Object) -> bool:
    """Whether the pod selects nodes by their GPU class in any way."""
    if gpu.CLASS.key in part(data, "spec", "nodeSelector"):
        return True
    affinity = part(data, "spec", "affinity", "nodeAffinity")
    required = items(affinity, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    preferred = [part(each, "preference") for each in items(affinity, _PREFERRED[-1])[:_MAX_CONTAINERS]]
    return any(
        part(expression).get("key") == gpu.CLASS.key
        for term in [*required[:_MAX_CONTAINERS], *preferred]
        for expression in items(term, "matchExpressions")[:_MAX_CONTAINERS]
    )


def _required(data: Object, term: Object) -> list[PatchOperation]:
    """Adds the class to every term, since a node has to match one of them as a whole."""
    path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    terms = items(data, *path)
    if not terms:
        return append_item(data, path, term)
    (expression,) = term["matchExpressions"]
    return [
        operation
        for number in range(min(len(terms), _MAX_CONTAINERS))
        for operation in append_item(data, (*path, str(number), "matchExpressions"), expression)
    ]
