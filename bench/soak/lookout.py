"""A watch on pods for who measures: as little of each as tells whether it is bound, and by one clock."""

import random
from collections.abc import Callable
from typing import Any

from kubenexus.api.codec import Unreadable
from kubenexus.api.meta import ApiObject, ObjectMeta
from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.reflector import Reflector
from kubenexus.client.watch_events import DELETED, WatchEvent
from kubenexus.client.watch_protocols import WatchClient, WatchProblem, WatchTarget

CLOCK = WallClock()


class _Spec(ApiObject):
    node_name: str = ""


class Seen(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


class Lookout:
    """A `WatchHandler`. `see` is told of each pod that lives, and again when it has changed; never that one is gone."""

    def __init__(self, see: Callable[[Seen], None]) -> None:
        self._see = see

    async def run(self, client: WatchClient) -> None:
        """Until cancelled."""
        target = WatchTarget(kinds.PODS, Seen, kinds.LIVE_PODS_FIELD_SELECTOR)
        await Reflector(client, target, self, clock=CLOCK, rng=random.Random(0)).run()

    def list_started(self) -> None: ...

    def list_finished(self) -> None: ...

    def problem_changed(self, trouble: WatchProblem) -> None: ...

    def list_page(self, items: list[Any], unreadable: tuple[Unreadable, ...]) -> None:
        for pod in items:
            self._see(pod)

    def events(self, changes: list[WatchEvent]) -> None:
        for event in changes:
            if event.type != DELETED and not isinstance(event.object, Unreadable):
                self._see(event.object)
