"""Recounts the ledger in the background, a few nodes at a time, for as long as the process lives.

All transitions of the ledger are tested. If one miscounts all the same, a node would look full, or free, until the next
restart. The auditor finds the miscount within one round, corrects and logs it.

A step never runs in the middle of an attempt: decisions do not await, and both run in one thread.
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

ROUND = 600.0  # seconds in which each node is audited once
NODES = 5  # nodes in one step, besides one pod query: a step takes a millisecond at most
MAX_PAUSE = 10.0  # seconds between two steps: with few nodes a round is shorter
MAX_LOGGED = 20  # nodes and counters in one log line

log = logs.get("ledger_auditor")


class LedgerAuditor:
    """Audits the ledger against `nodes`, the nodes as last seen, by name. Runs on a standby too: it will lead with this
    ledger."""

    def __init__(
        self, ledger: Ledger, nodes: Mapping[str, Node], queue: SchedulingQueue, metrics: Metrics, wakeup: Wakeup
    ) -> None:
        self._ledger, self._nodes, self._queue, self._metrics = ledger, nodes, queue, metrics
        self._wakeup = wakeup
        self._names: deque[str] = deque()  # nodes still to be audited in this round
        self._queries: deque[PodQuery] = deque()

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(self.pause)
            if self.step():
                self._wakeup.set()

    @property
    def pause(self) -> float:
        """Returns the seconds until the next step."""
        return min(ROUND * NODES / max(len(self._nodes), 1), MAX_PAUSE)

    def step(self) -> bool:
        """Audits a few nodes and one pod query. Returns whether a count was corrected. Then all refused jobs are tried
        again, since the correction does not show which of them it affects."""
        if not self._names:
            self._begin_round()
        found = [self._audit_node(self._names.popleft()) for _ in range(min(NODES, len(self._names)))]
        if self._queries:
            found.append(self._audit_query(self._queries.popleft()))
        if any(found):
            self._queue.on_event(WILDCARD_EVENT)
        return any(found)

    def _begin_round(self) -> None:
        """Begins a round. Pod queries that are left of the last round come first."""
        self._names.extend(self._nodes)
        if not self._queries:
            self._queries.extend(self._ledger.nodes.pods.queries)

    def _audit_node(self, name: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and self._run_audit(partial(self._ledger.audit, node))

    def _audit_query(self, query: PodQuery) -> bool:
        return self._run_audit(partial(self._ledger.audit_query, query))

    def _run_audit(self, audit: Callable[[], list[Miscount]]) -> bool:
        """Runs one audit, logs what it corrected and returns whether there was anything. An exception in an audit is
        logged, so that it does not end the process."""
        try:
            found = audit()
        except Exception as error:
            log.error("Failed to audit the ledger; going on", error)  # noqa: PLE1205 - our own log
            return False
        if found:
            self._metrics.ledger_corrections.labels().add()
            where, counters = dict.fromkeys(each.node for each in found if each.node), [str(each) for each in found]
            log.error(
                "Ledger was miscounted; put right", nodes=list(where)[:MAX_LOGGED], counters=counters[:MAX_LOGGED]
            )
        return bool(found)
