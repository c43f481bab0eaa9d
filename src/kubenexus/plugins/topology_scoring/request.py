"""How a pod wants the pods of its workload to be spread, and which pods these are."""

import enum
import functools
from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.keys import tenant
from kubenexus.api.keys.reading import read_key
from kubenexus.plugins.workload.signed import workload_of
from kubenexus.state.pods import CONTROLLER, MAX_UID, controller_of

_KEYS: Final = tenant.SPREAD_ZONES.keys | tenant.MIN_ZONES.keys | tenant.RACK_AFFINITY.keys
_MAX_KEPT: Final = 64  # characters of a value: more than any valid one has
_APP_NAME, _APP_INSTANCE, _APP = "app.kubernetes.io/name", "app.kubernetes.io/instance", "app"
Texts = tuple[tuple[str, str], ...]


class Racks(enum.IntEnum):
    """What a pod in the same rack is worth. The value is that in signatures."""

    IGNORED = 0
    SPREAD_LITTLE = 1
    SPREAD = 2
    TOGETHER = 3


class SpreadAnnotations(NamedTuple):
    """What a pod's annotations ask for; None: nothing."""

    zones: bool | None
    min_zones: int
    racks: Racks | None


_RACKS: Final = {"same-rack": Racks.TOGETHER, "spread-rack": Racks.SPREAD}


class SpreadRequest(NamedTuple):
    """How the pods of a workload are spread. `own` are the labels of a pod's record that they all have."""

    namespace: str
    own: Texts
    zones: bool
    min_zones: int
    racks: Racks


_USUAL: Final = SpreadRequest("", (), True, 0, Racks.SPREAD_LITTLE)


def spread_request(pod: Pod) -> SpreadRequest | None:
    """Returns how the pods of the pod's workload are to be spread; None if they are not, or if it has no workload."""
    template = template_request(pod)
    return None if template is None else of_workload(template, pod)


def template_request(pod: Pod) -> SpreadRequest | None:
    """Returns the same for a template, without the workload."""
    meta, serves = pod.metadata, not workload_of(pod).type.packs
    if _KEYS.isdisjoint(meta.annotations) and _KEYS.isdisjoint(meta.labels):
        return _USUAL if serves else None
    zones, min_zones, racks = _read(_stated(meta.labels), _stated(meta.annotations))
    if zones is None:
        zones = min_zones > 0 or (serves and racks is not Racks.TOGETHER)
    if racks is None:
        racks = Racks.SPREAD_LITTLE if zones and serves else Racks.IGNORED
    return SpreadRequest("", (), zones, min_zones if zones else 0, racks) if zones or racks else None


def of_workload(template: SpreadRequest, pod: Pod) -> SpreadRequest | None:
    """Returns the request of a template for the workload of one of its pods. Called for each pod."""
    own = own_labels(pod)
    return SpreadRequest(pod.metadata.namespace, own, *template[2:]) if own else None


def own_labels(pod: Pod) -> Texts:
    """Returns the labels that the records of the workload's pods have; () if the pod is in no workload.

    These are pods of the same controller. Without one, they have the same name and instance, or the same `app`. A
    DaemonSet's pods have one node each, and are not spread.
    """
    controller, labels = controller_of(pod), pod.metadata.labels
    if controller is not None:
        if controller.kind == "DaemonSet":
            return ()
        if 0 < len(controller.uid) <= MAX_UID:
            return ((CONTROLLER, controller.uid),)
    keys = (_APP_NAME, _APP_INSTANCE) if labels.get(_APP_NAME) else (_APP,)
    return tuple([(key, labels[key]) for key in keys if labels.get(key)])


def _stated(texts: dict[str, str]) -> Texts:
    return tuple(sorted([(key, texts[key][:_MAX_KEPT]) for key in _KEYS.intersection(texts)]))


@functools.lru_cache(maxsize=256)
def _read(labels: Texts, annotations: Texts) -> SpreadAnnotations:
    """Returns what these texts ask for. A value that cannot be read asks for nothing: it is a wish, not a demand."""
    texts = dict(labels), dict(annotations)
    zones, affinity = read_key(tenant.SPREAD_ZONES, *texts), read_key(tenant.RACK_AFFINITY, *texts).value
    return SpreadAnnotations(
        zones=zones.value if zones.is_set else None,
        min_zones=read_key(tenant.MIN_ZONES, *texts).value or 0,
        racks=None if affinity is None else _RACKS[affinity],
    )
