"""Warns pods of values that cannot be read, about devices and about placement: an event for each pod and text, once."""

from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import asks_for_a_part
from kubenexus.api.devices.pod_needs import NEED_KEYS, need_warnings, requests_devices
from kubenexus.api.keys import KeyEntry, gang, network, numa, read_key, tenant, workload
from kubenexus.observe import events, logs
from kubenexus.observe.recorder import EventRecorder

REMEMBERED: Final = 4096  # pods that were warned, and kinds of pods whose warnings are known
MAX_TEXT: Final = 256  # characters of a value that are remembered: an annotation may have 256 Ki
# Of one gang that are read or warned at once: 0.4 ms each. The others follow when the gang changes.
MAX_PODS: Final = 50
# Of one pod: each is an event, and a pod may have a value that cannot be read for each of fifty spellings.
MAX_WARNINGS: Final = 4

# What pods state about their kind of work, their tier, and the nodes and NUMA nodes they wish for. Other keys of gangs
# are not here: the gang itself warns of those.
WISHES: Final[tuple[KeyEntry[Any], ...]] = (
    workload.TYPE,
    workload.PLACEMENT,
    tenant.POD_TIER,
    tenant.PREEMPTIBLE,
    tenant.BACKFILL,
    tenant.SPREAD_ZONES,
    tenant.MIN_ZONES,
    tenant.RACK_AFFINITY,
    network.MIN_FABRIC,
    network.CO_LOCATE,
    network.REQUIRE_CLIQUE,
    network.SENSITIVE,
    numa.POLICY,
    numa.AFFINITY,
    numa.ANTI_AFFINITY,
    numa.MEMORY_INTENSIVE,
    numa.DISTANCE_WEIGHT,
    gang.NUMA_SPREAD,
)
_WISH_KEYS: Final = frozenset[str]().union(*(entry.keys for entry in WISHES))
_KEYS: Final = NEED_KEYS | _WISH_KEYS

log = logs.get("keys")


class KeyWarning(NamedTuple):
    """A sentence about a value, and the reason of its event."""

    reason: str
    text: str


class KeyWarnings:
    """Reports the warnings of waiting pods. Pods that state the same share one reading: a thousand members of a gang
    take a few milliseconds. A pod without these keys takes less than a microsecond."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._known: dict[Hashable, list[KeyWarning]] = {}
        self._warned: dict[str, list[KeyWarning]] = {}

    def report(self, pods: Iterable[Pod]) -> None:
        left = MAX_PODS
        for pod in pods:
            meta = pod.metadata
            if not (_KEYS.isdisjoint(meta.labels) and _KEYS.isdisjoint(meta.annotations)):
                left -= self._report_pod(pod)
                if left <= 0:
                    return

    def _report_pod(self, pod: Pod) -> bool:
        """Returns whether there was something to do: pods that are known take a few microseconds."""
        key, uid = _stated(pod), pod.metadata.uid
        warnings = self._known.get(key)
        fresh = warnings is None
        if warnings is None:
            warnings = pod_warnings(pod)
            _keep(self._known, key, warnings)
        before = self._warned.get(uid, [])
        if not warnings or before == warnings:
            return fresh
        _keep(self._warned, uid, warnings)
        new = [warning for warning in warnings if warning not in before]
        if new:
            log.warning("Pod has values that are not clear", why="; ".join([each.text for each in new]), pod=pod)
        for warning in new:
            self._recorder.record(events.key_unclear(pod, *warning), pod.spec.scheduler_name)
        return True


def pod_warnings(pod: Pod) -> list[KeyWarning]:
    """Returns a warning for each value that cannot be read, or that another spelling contradicts; of many, the first
    ones and how many more there are."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    found = [KeyWarning(events.DEVICES_UNCLEAR, text) for text in need_warnings(pod)]
    wishes = [text for entry in WISHES for text in read_key(entry, labels, annotations).warnings]
    # Each once: two entries share the key of pods that fill gaps.
    found += [KeyWarning(events.PLACEMENT_UNCLEAR, text) for text in dict.fromkeys(wishes)]
    beyond = len(found) - MAX_WARNINGS
    if beyond > 0:
        found[MAX_WARNINGS:] = [KeyWarning(found[-1].reason, f"{beyond} more values of this pod are not clear")]
    return found


def _stated(pod: Pod) -> Hashable:
    """Returns what the warnings of a pod follow from."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    needs = not (NEED_KEYS.isdisjoint(labels) and NEED_KEYS.isdisjoint(annotations))
    return _brief(labels), _brief(annotations), needs and (requests_devices(pod) or asks_for_a_part(pod))


def _brief(texts: dict[str, str]) -> Hashable:
    """Returns the keys that are read, with their values, of which a long one is not kept."""
    return tuple(
        [
            (key, text if len(text) <= MAX_TEXT else (text[:MAX_TEXT], len(text), hash(text)))
            for key, text in texts.items()
            if key in _KEYS
        ]
    )


def _keep(table: dict[Any, list[KeyWarning]], key: Hashable, warnings: list[KeyWarning]) -> None:
    """Remembers warnings, and forgets the oldest ones."""
    if len(table) >= REMEMBERED and key not in table:
        del table[next(iter(table))]
    table[key] = warnings
