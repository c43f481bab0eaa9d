"""Warns pods of values about devices that cannot be read: an event for each pod and text, once."""

from collections.abc import Iterable
from typing import Final

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import asks_for_a_part
from kubenexus.api.devices.pod_needs import need_warnings, requests_devices, stated_needs
from kubenexus.observe import events, logs
from kubenexus.observe.recorder import EventRecorder

REMEMBERED: Final = 4096  # pods that were warned, and kinds of pods whose warnings are known

log = logs.get("devices")


class DeviceWarnings:
    """Reports the warnings of waiting pods. Pods that state the same share one reading: a thousand members of a gang
    take about a millisecond."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._known: dict[tuple[object, ...], list[str]] = {}
        self._warned: dict[str, list[str]] = {}

    def report(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            stated = stated_needs(pod)
            if stated:
                self._report_pod(pod, stated)

    def _report_pod(self, pod: Pod, stated: tuple[tuple[str, str], ...]) -> None:
        warnings, uid = self._warnings(pod, stated), pod.metadata.uid
        if not warnings or self._warned.get(uid) == warnings:
            return
        if len(self._warned) >= REMEMBERED:
            self._warned.clear()
        before = self._warned.get(uid, [])
        self._warned[uid] = warnings
        for text in warnings:
            if text not in before:
                log.warning("Pod is not clear about its devices", why=text, pod=pod)
                self._recorder.record(events.devices_unclear(pod, text), pod.spec.scheduler_name)

    def _warnings(self, pod: Pod, stated: tuple[tuple[str, str], ...]) -> list[str]:
        key = (stated, requests_devices(pod) or asks_for_a_part(pod))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[key] = need_warnings(pod)
        return known
