"""What a pod asks of the network. Pods that ask for nothing, need no GPU and are in no gang have no request."""

import functools
from typing import Any, Final, NamedTuple

from kubenexus.api.classification.workload import WorkloadType
from kubenexus.api.core import Pod
from kubenexus.api.gangs.resolver import is_gang_member
from kubenexus.api.keys import network
from kubenexus.api.keys.entry import KeyEntry
from kubenexus.api.keys.reading import read_key
from kubenexus.plugins.devices.request import needs_of
from kubenexus.plugins.network_fabric.node_facts import TIERS
from kubenexus.plugins.workload.signed import workload_of

_ENTRIES: Final[tuple[KeyEntry[Any], ...]] = (
    network.MIN_FABRIC,
    network.SENSITIVE,
    network.CO_LOCATE,
    network.REQUIRE_CLIQUE,
)
_KEYS: Final = frozenset[str]().union(*(entry.keys for entry in _ENTRIES))
_MAX_KEPT: Final = 256  # characters of values that are remembered
Texts = tuple[tuple[str, str], ...]


class FabricRequest(NamedTuple):
    """`min_tier` is the least tier that the pod accepts, 0 for any. `sensitive`: closeness counts more. `alone`: it
    does not count. `workload` decides which fabrics get more points. `problem` says why `min-fabric-tier` cannot be
    read."""

    min_tier: int = 0
    sensitive: bool = False
    alone: bool = False
    workload: str = ""
    problem: str = ""


_NOTHING: Final = FabricRequest()


def fabric_request(pod: Pod) -> FabricRequest | None:
    """Returns what a pod asks of the network, or None if nothing. Called for each pod: most have none of the keys."""
    meta = pod.metadata
    has_keys = not _KEYS.isdisjoint(meta.annotations) or not _KEYS.isdisjoint(meta.labels)
    if not has_keys and needs_of(pod) is None and not is_gang_member(pod):
        return None
    stated = _read(_stated(meta.labels), _stated(meta.annotations)) if has_keys else _NOTHING
    return stated._replace(workload=str(workload_of(pod).type))


def preference(workload: str) -> str:
    """Returns the kind of work whose points count: that of training, that of serving, or none."""
    if workload in (WorkloadType.TRAINING, WorkloadType.BATCH):
        return "training"
    return "serving" if workload in (WorkloadType.INFERENCE, WorkloadType.SERVICE) else ""


def _stated(texts: dict[str, str]) -> Texts:
    """Returns the texts of the keys. One that is longer than any value is cut, which cannot make it valid."""
    return tuple(sorted([(key, texts[key][:_MAX_KEPT]) for key in _KEYS.intersection(texts)]))


@functools.lru_cache(maxsize=256)
def _read(labels: Texts, annotations: Texts) -> FabricRequest:
    """Returns the request of pods with these texts, without their kind of work. Pods of one template have the same."""
    texts = dict(labels), dict(annotations)
    least, locate = read_key(network.MIN_FABRIC, *texts), read_key(network.CO_LOCATE, *texts)
    return FabricRequest(
        min_tier=TIERS[least.value] if least.value is not None else 0,
        sensitive=bool(read_key(network.SENSITIVE, *texts).value),
        alone=locate.is_set and locate.value == "none",
        problem=str(least.problems[0]) if least.problems and not least.is_set else "",
    )
