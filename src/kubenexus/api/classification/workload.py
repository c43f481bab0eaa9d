"""The kind of work of a pod. Pure: it reads the pod alone.

By falling precedence:

    key          `workload.kubenexus.io/type`, if its value is valid
    interactive  the labels of notebook controllers, or a whole word in `app.kubernetes.io/name`; not JupyterHub's own
                 services, which have the name, too
    training     the labels and owners of training operators
    inference    the labels and owners of model servers
    batch        the labels and owners of job controllers; training with a gang or more than one GPU
    training     a gang
    inference    a whole word in `app.kubernetes.io/component`
    interactive  a whole word in an image: an image says least, since jobs run in images of notebooks, too
    service      everything else

Work for a pod is bounded: labels and annotations are looked up by known keys; of owners,
containers, resources and long texts only the first are read.
"""

from itertools import islice
from typing import Final, NamedTuple

from kubenexus.api.classification.gang_membership import is_in_gang
from kubenexus.api.classification.operators import LABEL_KEYS, Mark, owner_mark, strongest_mark
from kubenexus.api.classification.words import (
    interactive_image_word,
    interactive_word,
    is_hub_component,
    serving_word,
)
from kubenexus.api.classification.workload_type import WorkloadType
from kubenexus.api.core import Container, Pod, PodSpec, QuantityText, ResourceList
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.gangs.sources import KEYS as GANG_KEYS
from kubenexus.api.keys import tenant, workload
from kubenexus.api.keys.reading import read_key
from kubenexus.api.quantity import to_units
from kubenexus.base.errors import Malformed

__all__ = ["SpecMarks", "Workload", "WorkloadType", "classify", "is_preemptible", "spec_marks"]

MAX_CONTAINERS: Final = 32  # of each list, that are looked at
MAX_RESOURCES: Final = 64  # of one container, that are looked at
MAX_TEXTS: Final = 64  # labels or annotations that are read as they are; of more, those with known keys
SEVERAL: Final = 2  # GPUs of one pod that make a batch job training

# Keys that are read on a pod. Most pods have none of them: one test is enough for those.
_STATED: Final = workload.TYPE.keys | tenant.PREEMPTIBLE.keys | GANG_KEYS
_LABELS: Final = _STATED | LABEL_KEYS
_NAME: Final = workload.APP_NAME.key
_COMPONENT: Final = workload.APP_COMPONENT.key
_SERVICE: Final[Mark] = (WorkloadType.SERVICE, "no mark of another kind")
_RESTARTS: Final = "Always"  # the restart policy of an init container that is a sidecar


class Workload(NamedTuple):
    """A pod's kind of work and what showed it (`label spark-role`, `owner Job`). `preemptible`: the pod agrees to be
    preempted, so it may fill gaps. `gang`: the pod declares a gang."""

    type: WorkloadType
    reason: str
    preemptible: bool = False
    gang: bool = False


_ORDINARY: Final = Workload(*_SERVICE)


class SpecMarks(NamedTuple):
    """What the spec shows: a word in an image, and the number of GPUs. Pods of one template have the same."""

    image_word: str
    gpus: int


def classify(pod: Pod, marks: SpecMarks | None = None) -> Workload:
    """Returns the kind of work of a pod. `marks` is the result of `spec_marks`, where the caller knows it."""
    meta, spec = pod.metadata, pod.spec
    labels, annotations = meta.labels, meta.annotations
    mark = owner_mark(meta.owner_references) if meta.owner_references else None
    # The views' own test goes over the shorter side: a pod may have a hundred thousand labels.
    states = spec.scheduling_group is not None or spec.workload_ref is not None
    states = states or not annotations.keys().isdisjoint(_STATED)
    if not labels.keys().isdisjoint(_LABELS):
        states = states or not labels.keys().isdisjoint(_STATED)
        mark = strongest_mark(labels, mark)
    if states:
        return _stating(pod, mark, marks)
    found = _kind(pod, mark, marks, gang=False)
    return _ORDINARY if found is _SERVICE and spec.priority >= 0 else Workload(*found, spec.priority < 0)


def _stating(pod: Pod, mark: Mark | None, marks: SpecMarks | None) -> Workload:
    """Returns the kind of work of a pod that names it, or that states whether it may be preempted, or a gang."""
    meta, gang = pod.metadata, is_in_gang(pod)
    labels, annotations = _only(meta.labels, _STATED), _only(meta.annotations, _STATED)
    preemptible = _agrees(labels, annotations, pod.spec)
    stated = read_key(workload.TYPE, labels, annotations)
    if stated.value is not None:
        return Workload(WorkloadType(stated.value), f"key {stated.source_key}", preemptible, gang)
    return Workload(*_kind(pod, mark, marks, gang=gang), preemptible, gang)


def is_preemptible(pod: Pod) -> bool:
    """Returns whether a pod agrees to be preempted: it says so, or its priority is negative."""
    meta = pod.metadata
    keys = tenant.PREEMPTIBLE.keys
    return _agrees(_only(meta.labels, keys), _only(meta.annotations, keys), pod.spec)


def spec_marks(spec: PodSpec) -> SpecMarks:
    """Returns what the images and requests of a spec show."""
    containers, init = spec.containers[:MAX_CONTAINERS], spec.init_containers[:MAX_CONTAINERS]
    words = (interactive_image_word(each.image) for each in containers)
    sidecars = [each for each in init if each.restart_policy == _RESTARTS]
    together = sum(map(_gpus, containers)) + sum(map(_gpus, sidecars))
    return SpecMarks(next(filter(None, words), ""), max((together, *map(_gpus, init))))


def _kind(pod: Pod, mark: Mark | None, marks: SpecMarks | None, *, gang: bool) -> Mark:
    """Returns the kind of work of a pod that does not name it, and what showed it."""
    labels, spec = pod.metadata.labels, pod.spec
    if mark is not None and mark[0] is WorkloadType.INTERACTIVE:
        return mark
    name, component = labels.get(_NAME), labels.get(_COMPONENT)
    hub = bool(component) and is_hub_component(component or "")
    if name and not hub and (word := interactive_word(name)):
        return WorkloadType.INTERACTIVE, f"{word} in label {_NAME}"
    if mark is not None and (mark[0] is not WorkloadType.BATCH):
        return mark
    if gang:
        return WorkloadType.TRAINING, "gang" if mark is None else f"{mark[1]} and gang"
    found = marks or spec_marks(spec)
    if mark is not None:
        several = found.gpus >= SEVERAL
        return (WorkloadType.TRAINING, f"{mark[1]} and {found.gpus} GPUs") if several else mark
    if component and (word := serving_word(component)):
        return WorkloadType.INFERENCE, f"{word} in label {_COMPONENT}"
    if found.image_word and not hub:
        return WorkloadType.INTERACTIVE, f"{found.image_word} in an image"
    return _SERVICE


def _only(texts: dict[str, str], keys: frozenset[str]) -> dict[str, str]:
    """Returns the texts of known keys, and perhaps a few others: to leave those out takes longer than to keep them."""
    if len(texts) <= MAX_TEXTS:
        return texts
    return {key: texts[key] for key in texts.keys() & keys}


def _agrees(labels: dict[str, str], annotations: dict[str, str], spec: PodSpec) -> bool:
    stated: bool | None = read_key(tenant.PREEMPTIBLE, labels, annotations).value
    return spec.priority < 0 if stated is None else stated


def _gpus(container: Container) -> int:
    """Returns how many devices a container requests. The API server copies limits of devices to requests."""
    resources = container.resources
    return max(_devices(resources.requests), _devices(resources.limits))


def _devices(amounts: ResourceList | None) -> int:
    if not amounts:
        return 0
    first = islice(amounts.items(), MAX_RESOURCES)
    return sum(_number(text) for name, text in first if is_device_resource(name))


def _number(text: QuantityText) -> int:
    try:
        return max(to_units(text), 0)
    except Malformed:  # the ledger refuses the pod with this problem
        return 0
