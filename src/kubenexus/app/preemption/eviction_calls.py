"""The calls that nominate a pod, and that end one victim of a preemption.

    evict:   POST eviction ─▶ condition DisruptionTarget       (a profile of ours: disruption budgets are kept)
    delete:  condition DisruptionTarget ─▶ DELETE              (as kube-scheduler)

The Eviction API writes a condition DisruptionTarget with a reason of its own. So the reason PreemptionByScheduler comes
after it (`victim_marks`), and a pod whose budget refuses has no such condition.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from kubenexus.api.codec import from_json
from kubenexus.api.core import Pod
from kubenexus.base.clock import Clock
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.base.timestamps import format_time
from kubenexus.client import kinds
from kubenexus.client.calls import Api, ApiError, Call, Uncertain, Unreachable
from kubenexus.client.verbs import delete, evict, get, patch_pod_status
from kubenexus.state.pods import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, PodRecord

GONE: Final = (404, 409, 422)  # the pod is gone, or another pod has its name
BUDGET: Final = 429
CONFLICT: Final = 409
WAITS: Final = (1.0, 2.0, 4.0, 8.0, 15.0)  # seconds between two tries of an eviction: half a minute in all
SEND: Final = 5.0  # timeout of one eviction, in seconds


class BudgetRefusal(KubeNexusError):
    """A disruption budget did not allow an eviction in time."""


class EvictionCalls:
    """Ends victims. `api` sends nothing while this process does not lead. `wait` is called between two tries."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock

    async def nominate(self, namespace: str, name: str, uid: str, node: str, carries: Call | None = None) -> bool:
        """Writes `nominatedNodeName`, or removes it ("" for no node), and what another patch of the pod's status would
        write. Returns whether the pod exists."""
        status = {} if carries is None else msgspec.json.decode(carries.body)["status"]
        status["nominatedNodeName"] = node or None
        return await self._unless_gone(patch_pod_status(namespace, name, uid, status))

    async def mark(self, victim: PodRecord, profile: str) -> None:
        """Writes the condition that says why a victim ends. One that is gone is no error."""
        await self._unless_gone(self._condition(victim, profile))

    async def delete(self, victim: PodRecord, profile: str) -> None:
        """Deletes a victim. One that is gone is no error."""
        await self.mark(victim, profile)
        await self._unless_gone(delete(kinds.PODS, victim.namespace, victim.name, victim.uid))

    async def evict(
        self, victim: PodRecord, wanted: Callable[[], bool], wait: Callable[[float], Awaitable[None]]
    ) -> bool:
        """Evicts a victim, with its own grace period, in several tries. Returns False if it is not `wanted` any more.

        Raises BudgetRefusal if the budget allows it in none of them; other errors as `Api.send`.
        """
        for seconds in (*WAITS, None):
            if not wanted():
                return False
            problem = await self._try(victim)
            if problem is None:
                return True
            if seconds is None:
                refused = isinstance(problem, ApiError) and problem.code == BUDGET
                raise BudgetRefusal(str(problem)) if refused else problem
            await wait(seconds)
        return False

    async def _try(self, victim: PodRecord) -> KubeNexusError | None:
        """Returns None if the victim ends now or is gone, else why another try is needed. An answer that does not tell
        whether it ends is followed by a look: it is not evicted twice."""
        try:
            await self._api.send(evict(victim.namespace, victim.name, victim.uid), timeout=SEND)
        except Unreachable as error:
            return error
        except Uncertain as error:
            return None if await self._ends(victim) else error
        except ApiError as error:
            if error.code == BUDGET:
                return error
            if error.code == CONFLICT or error.code >= 500:
                return None if await self._ends(victim) else error
            if error.code not in GONE:
                raise
        return None

    async def _ends(self, victim: PodRecord) -> bool:
        """Reads a victim again. Returns whether it terminates, is gone, or another pod has its name."""
        try:
            answer = await self._api.send(get(kinds.PODS, victim.namespace, victim.name), timeout=SEND)
            meta = from_json(answer, Pod).metadata
        except ApiError as error:
            return error.code in GONE
        except (Unreachable, Uncertain, Malformed):
            return False
        return meta.uid != victim.uid or bool(meta.deletion_timestamp)

    def _condition(self, victim: PodRecord, profile: str) -> Call:
        condition = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": PREEMPTION_BY_SCHEDULER,
            "message": f"{profile}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        return patch_pod_status(victim.namespace, victim.name, victim.uid, {"conditions": [condition]})

    async def _unless_gone(self, call: Call) -> bool:
        try:
            await self._api.send(call)
        except ApiError as error:
            if error.code not in GONE:
                raise
            return False
        return True
