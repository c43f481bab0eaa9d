"""Counts and times API writes by purpose, for `async_api_call_execution_total` and related metrics."""

from typing import Final

from kubenexus.base.clock import Clock
from kubenexus.client.calls import Api, Call
from kubenexus.observe.metrics import Metrics

BINDING: Final = "pod_binding"
POD_STATUS: Final = "pod_status_patch"
GROUP_STATUS: Final = "podgroup_status_patch"  # kube-scheduler does not count these
RESERVATION_STATUS: Final = "resourcereservation_status_patch"  # nor these


class MeteredApi:
    """An `Api` that counts and times all its writes under one purpose. Reads are not counted."""

    def __init__(self, api: Api, purpose: str, metrics: Metrics, clock: Clock) -> None:
        self._api, self._purpose, self._metrics, self._clock = api, purpose, metrics, clock

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if call.method == "GET":
            return await self._api.send(call, timeout=timeout)
        began = self._clock.now()
        try:
            answer = await self._api.send(call, timeout=timeout)
        except Exception:
            self._ended("error", began)
            raise
        self._ended("success", began)
        return answer

    def _ended(self, result: str, began: float) -> None:
        self._metrics.api_calls.labels(self._purpose, result).add()
        self._metrics.api_call_duration.labels(self._purpose, result).observe(self._clock.now() - began)
