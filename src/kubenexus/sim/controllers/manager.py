"""The controller manager: queues affected workloads, calls their reconcilers and executes the results.

    a change ─▶ concerned ─▶ [ReplicaSets, StatefulSets, DaemonSets, Jobs] then [Deployments] ─▶ run ─▶ calls ─▶ changes

A workload that several changes affect is reconciled once. A Deployment reads the status of its ReplicaSets, so these
are reconciled first and their counts are never stale.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubenexus.base.clock import Clock
from kubenexus.client import verbs
from kubenexus.client.calls import Call
from kubenexus.client.kinds import RESOURCE_CLAIMS, RESOURCE_CLAIMS_BETA
from kubenexus.sim.apiserver.http_types import Request, Response
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.controllers import daemon_set, deployment, job, owner_refs, replica_set, stateful_set
from kubenexus.sim.controllers import events as notes
from kubenexus.sim.controllers.object_cache import WORKLOADS, ControllerCache, selector
from kubenexus.sim.controllers.reconcile_result import ReconcileResult, WorkloadEvent
from kubenexus.sim.controllers.resource_claim import ResourceClaimController
from kubenexus.sim.controllers.types import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Item,
    Key,
    Owned,
)
from kubenexus.sim.delaying_queue import DelayingQueue

Reconcile = Callable[[Item, Sequence[Any], ControllerCache, float], ReconcileResult]
RECONCILERS: dict[str, Reconcile] = {
    DEPLOYMENTS: deployment.reconcile,
    REPLICA_SETS: replica_set.reconcile,
    STATEFUL_SETS: stateful_set.reconcile,
    DAEMON_SETS: daemon_set.reconcile,
    JOBS: job.reconcile,
}
MAX_RECONCILES = 50  # in one run; then the sockets are served
BACKOFF, LONGEST_BACKOFF = 1.0, 60.0  # seconds after a refused call


class ControllerManager:
    """All controllers of one server. `wake` is called when the queue becomes non-empty."""

    def __init__(
        self,
        server: ApiServer,
        clock: Clock,
        *,
        wake: Callable[[], None] = lambda: None,
        token: str = "",
        events: bool = True,
    ) -> None:
        self._server, self._clock, self._wake, self._events = server, clock, wake, events
        self._head = {"authorization": f"Bearer {token}"} if token else {}
        self._turns: dict[str, dict[str, None]] = {resource: {} for resource in WORKLOADS}
        self._later = DelayingQueue()
        self._failures: dict[Key, int] = {}
        self._writing_status: Key | None = None
        served = server.core.registry.find(RESOURCE_CLAIMS.api_version, RESOURCE_CLAIMS.plural)
        claims = RESOURCE_CLAIMS if served is not None else RESOURCE_CLAIMS_BETA
        self._resource_claims = ResourceClaimController(server.core.store, self._send, wake, claims)
        self._cache = ControllerCache(server.core.store, self._concerned)

    def close(self) -> None:
        """Ends the controllers: later changes are ignored."""
        self._cache.close()
        self._resource_claims.close()
        self._turns = {resource: {} for resource in WORKLOADS}

    @property
    def idle(self) -> bool:
        """Whether no workload is queued now; `next_due` returns when one will be."""
        return not any(self._turns.values()) and self._resource_claims.idle

    def next_due(self) -> float | None:
        return self._later.next_due()

    def run(self, most: int = MAX_RECONCILES) -> None:
        """Reconciles up to `most` workloads, and as many pods and claims. Call again while it is not idle, and at
        `next_due`."""
        self._resource_claims.run(most)
        for item in self._later.due(self._clock.now(), most):
            self._later.finish(item)
            self._turns[item.what][item.whom] = None
        for _ in range(most):
            key = self._next()
            if key is None:
                return
            self._turn(key)

    # ---- the queue ---------------------------------------------------------------------------------------------------

    def _concerned(self, key: Key) -> None:
        if key == self._writing_status:  # the reconciler knows the status that it has just written
            return
        idle = self.idle
        self._turns[key[0]][key[1]] = None
        if idle:
            self._wake()

    def _next(self) -> Key | None:
        for resource in WORKLOADS:
            waiting = self._turns[resource]
            if waiting:
                name = next(iter(waiting))
                del waiting[name]
                return resource, name
        return None

    def _turn(self, key: Key) -> None:
        item = self._cache.item(key)
        if item is None:
            self._failures.pop(key, None)
            self._later.drop(*key)
            self._all(None, self._orphaned(key))
            return
        children = self._children(key)
        mine = [child for child in children if child.controller and child.controller.uid == item["metadata"]["uid"]]
        claims = self._claims(key[0], item, mine)
        if claims:  # the calls change objects, which causes another reconcile
            self._done(key, self._all(item, claims))
            return
        step = RECONCILERS[key[0]](item, mine, self._cache, self._clock.now())
        self._later.drop(*key)
        if step.again is not None:
            self._later.plan(*key, step.again)
        self._done(key, self._take(key[0], item, step))

    def _orphaned(self, key: Key) -> list[Call]:
        return job.orphaned_pods(self._cache.pods.of(key)) if key[0] == JOBS else []

    def _children(self, key: Key) -> Sequence[Owned]:
        return self._cache.sets.of(key) if key[0] == DEPLOYMENTS else self._cache.pods.of(key)

    def _claims(self, resource: str, item: Item, mine: Sequence[Owned]) -> list[Call]:
        """Returns the calls that release children that no longer match and adopt those that do."""
        if "deletionTimestamp" in item["metadata"]:
            return []
        family = self._cache.sets if resource == DEPLOYMENTS else self._cache.pods
        free = [child for child in family.free(item["metadata"]["namespace"]) if not child.terminating]
        means = selector(item).matches
        gone = [
            owner_refs.release(child) for child in mine if not child.terminating and not means(child.metadata.labels)
        ]
        return gone + [owner_refs.adopt(resource, item, child) for child in free if means(child.metadata.labels)]

    # ---- calls -------------------------------------------------------------------------------------------------------

    def _take(self, resource: str, item: Item, step: ReconcileResult) -> bool:
        """Executes a result. The status is written first: the calls release pods that are counted in it."""
        if step.status is not None and not self._write_status(resource, item, step.status, step.annotations):
            return False
        for note in step.notes:
            self._tell(resource, item, note)
        return self._all(item, step.calls, resource)

    def _write_status(self, resource: str, item: Item, status: Item, annotations: Mapping[str, str]) -> bool:
        meta, said = item["metadata"], item["metadata"].get("annotations", {})
        if status == item.get("status", {}) and annotations.items() <= said.items():
            return True
        new = {**item, "metadata": {**meta, "annotations": {**said, **annotations}}, "status": status}
        call = verbs.update(owner_refs.RESOURCES[resource], meta["namespace"], meta["name"], new, part="status")
        self._writing_status = resource, f"{meta['namespace']}/{meta['name']}"
        try:
            return self._send(call).code < 300
        finally:
            self._writing_status = None

    def _all(self, item: Item | None, calls: Sequence[Call], resource: str = "") -> bool:
        """Sends the calls. Returns False after the first refusal; the others would be refused as well and are tried
        later."""
        for call in calls:
            answer = self._send(call)
            if item is not None and resource:
                for note in notes.about(call, answer):
                    self._tell(resource, item, note)
            if answer.code >= 300 and answer.code not in (404, 409):
                return False
        return True

    def _send(self, call: Call) -> Response:
        head = {"content-type": call.content_type, "user-agent": "kubenexus-controllers", **self._head}
        answer = self._server.handle(Request(call.method, call.path, call.body, head))
        self._server.tidy()
        return answer

    def _tell(self, resource: str, item: Item, note: WorkloadEvent) -> None:
        if self._events:
            self._send(notes.event(owner_refs.RESOURCES[resource], item, note, self._clock.now()))

    def _done(self, key: Key, well: bool) -> None:
        """Schedules a retry after a refusal, with growing delays. A change of the workload causes an earlier one."""
        if well:
            self._failures.pop(key, None)
            return
        tries = self._failures[key] = self._failures.get(key, 0) + 1
        self._later.plan(*key, self._clock.now() + min(BACKOFF * 2.0 ** min(tries - 1, 10), LONGEST_BACKOFF))
