"""The auditor: the ledger is counted anew, a few nodes at a time, for as long as the process lives.

All transitions of the ledger are tested; should one miscount all the same, a node would look full, or free, until
somebody restarts the scheduler. Here it is found within a round, put right, and told to whoever reads the log.

A step never comes in the middle of an attempt: decisions do not wait for anything, and everything is one thread.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from kubenexus.api.core import Node
from kubenexus.app.wakeup import Wakeup
from kubenexus.observe import logs
from kubenexus.observe.metrics import Metrics
from kubenexus.queue.object_events import WILDCARD_EVENT
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.audit import Miscount
from kubenexus.state.ledger import Ledger
from kubenexus.state.pod_queries import PodQuery

ROUND = 600.0  # seconds in which each node is looked at
NODES = 5  # in one step, and one question about pods: everything else waits for a millisecond at most
LONGEST = 10.0  # seconds between two steps: where there are few nodes, a round is shorter
TOLD = 20  # counters in a line of the log

log = logs.get("ledger_auditor")


class LedgerAuditor:
    """`nodes` as they were last seen, by name. On a standby, too: it will lead with this ledger."""

    def __init__(
        self, ledger: Ledger, nodes: Mapping[str, Node], queue: SchedulingQueue, metrics: Metrics, wakeup: Wakeup
    ) -> None:
        self._ledger, self._nodes, self._queue, self._metrics = ledger, nodes, queue, metrics
        self._wakeup = wakeup
        self._names: deque[str] = deque()  # left of this round
        self._questions: deque[PodQuery] = deque()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self.pause)
            if self.step():
                self._wakeup.set()

    @property
    def pause(self) -> float:
        """Seconds until the next step."""
        return min(ROUND * NODES / max(len(self._nodes), 1), LONGEST)

    def step(self) -> bool:
        """Whether anything was put right. Then whoever was refused is tried again: nobody knows what for."""
        if not self._names:
            self._begin()
        found = [self._look(self._names.popleft()) for _ in range(min(NODES, len(self._names)))]
        if self._questions:
            found.append(self._ask(self._questions.popleft()))
        if any(found):
            self._queue.on_event(WILDCARD_EVENT)
        return any(found)

    def _begin(self) -> None:
        """A round. Questions that were too many for the last one come first."""
        self._names.extend(self._nodes)
        if not self._questions:
            self._questions.extend(self._ledger.nodes.pods.queries)

    def _look(self, name: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and self._mended(partial(self._ledger.audit, node))

    def _ask(self, question: PodQuery) -> bool:
        return self._mended(partial(self._ledger.audit_query, question))

    def _mended(self, audit: Callable[[], list[Miscount]]) -> bool:
        """An audit that breaks must not bring down what it looks after."""
        try:
            found = audit()
        except Exception as error:
            log.error("Failed to audit the ledger; going on", error)  # noqa: PLE1205 - our own log
            return False
        if found:
            self._metrics.ledger_corrections.labels().add()
            where, counters = dict.fromkeys(each.node for each in found if each.node), [str(each) for each in found]
            log.error("Ledger was miscounted; put right", nodes=list(where)[:TOLD], counters=counters[:TOLD])
        return bool(found)
