"""A watch on pods for who measures: as little of each as tells whether it is bound, and by one clock."""

import random
from collections.abc import Callable
from typing import Any

from kubenexus.api.codec import Unreadable
from kubenexus.api.meta import Object, ObjectMeta
from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.changes import DELETED, Change
from kubenexus.client.topics import Source, Topic, Trouble
from kubenexus.client.watch import Reflector

CLOCK = WallClock()


class _Spec(Object):
    node_name: str = ""


class Seen(Object):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


class Lookout:
    """A `Receiver`. `see` is told of each pod that lives, and again when it has changed; never that one is gone."""

    def __init__(self, see: Callable[[Seen], None]) -> None:
        self._see = see

    async def run(self, client: Source) -> None:
        """Until cancelled."""
        topic = Topic(kinds.PODS, Seen, kinds.LIVE)
        await Reflector(client, topic, self, clock=CLOCK, rng=random.Random(0)).run()

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def troubled(self, trouble: Trouble) -> None: ...

    def listed(self, items: list[Any], unreadable: tuple[Unreadable, ...]) -> None:
        for pod in items:
            self._see(pod)

    def changed(self, changes: list[Change]) -> None:
        for change in changes:
            if change.type != DELETED and not isinstance(change.object, Unreadable):
                self._see(change.object)
