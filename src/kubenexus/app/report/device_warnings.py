"""Warns pods of values about devices that cannot be read: an event for each pod and text, once."""

from collections.abc import Hashable, Iterable
from typing import Any, Final

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import asks_for_a_part
from kubenexus.api.devices.pod_needs import need_warnings, requests_devices, stated_needs
from kubenexus.observe import events, logs
from kubenexus.observe.recorder import EventRecorder

REMEMBERED: Final = 4096  # pods that were warned, and kinds of pods whose warnings are known
MAX_TEXT: Final = 256  # characters of a value that are remembered: an annotation may have 256 Ki
# Of one gang that are read or warned at once: 0.4 ms each. The others follow when the gang changes.
MAX_PODS: Final = 50

log = logs.get("devices")


class DeviceWarnings:
    """Reports the warnings of waiting pods. Pods that state the same share one reading: a thousand members of a gang
    take about a millisecond."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._known: dict[Hashable, list[str]] = {}
        self._warned: dict[str, list[str]] = {}

    def report(self, pods: Iterable[Pod]) -> None:
        left = MAX_PODS
        for pod in pods:
            stated = stated_needs(pod)
            if stated:
                left -= self._report_pod(pod, stated)
                if left <= 0:
                    return

    def _report_pod(self, pod: Pod, stated: tuple[tuple[str, str], ...]) -> bool:
        """Returns whether there was something to do: pods that are known take a few microseconds."""
        key = (tuple([_brief(each) for each in stated]), requests_devices(pod) or asks_for_a_part(pod))
        warnings, uid = self._known.get(key), pod.metadata.uid
        fresh = warnings is None
        if warnings is None:
            warnings = need_warnings(pod)
            _keep(self._known, key, warnings)
        before = self._warned.get(uid, [])
        if not warnings or before == warnings:
            return fresh
        _keep(self._warned, uid, warnings)
        for text in warnings:
            if text not in before:
                log.warning("Pod is not clear about its devices", why=text, pod=pod)
                self._recorder.record(events.devices_unclear(pod, text), pod.spec.scheduler_name)
        return True


def _brief(stated: tuple[str, str]) -> Hashable:
    """Returns a key and its value, of which a long one is not kept."""
    key, text = stated
    return stated if len(text) <= MAX_TEXT else (key, text[:MAX_TEXT], len(text), hash(text))


def _keep(table: dict[Any, list[str]], key: Hashable, warnings: list[str]) -> None:
    """Remembers warnings, and forgets the oldest ones."""
    if len(table) >= REMEMBERED and key not in table:
        del table[next(iter(table))]
    table[key] = warnings
