"""The labels of namespaces, read from the API server when they are needed and kept for some seconds."""

import asyncio
from collections.abc import Mapping
from typing import Final

from kubenexus.api.codec import from_json
from kubenexus.api.workloads import Namespace
from kubenexus.app.http.authorization import TtlCache
from kubenexus.base.clock import Clock
from kubenexus.base.errors import Malformed
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.kinds import NAMESPACES
from kubenexus.client.verbs import get

AT_A_TIME: Final = 16  # namespaces that are read
_SECONDS: Final = 2.0  # for one of them; the API server waits for us meanwhile


class NamespaceLabels:
    """Finds the labels of a namespace. Requests for the same namespace share one call."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._known: TtlCache[Mapping[str, str]] = TtlCache(clock)
        self._reading: dict[str, asyncio.Task[Mapping[str, str] | None]] = {}

    async def find(self, name: str) -> Mapping[str, str] | None:
        """Returns the labels, None if they cannot be read in time."""
        key = name.encode()
        if key in self._known:
            return self._known.get(key)
        if name not in self._reading:
            if len(self._reading) >= AT_A_TIME:
                return None
            self._reading[name] = task = asyncio.ensure_future(self._read(name))
            task.add_done_callback(lambda _: self._reading.pop(name, None))
        return await asyncio.shield(self._reading[name])

    async def _read(self, name: str) -> Mapping[str, str] | None:
        try:
            found = from_json(await self._api.send(get(NAMESPACES, "", name), timeout=_SECONDS), Namespace)
        except (ApiError, Unreachable, Uncertain, Malformed):
            return None
        self._known.put(name.encode(), found.metadata.labels)
        return found.metadata.labels
