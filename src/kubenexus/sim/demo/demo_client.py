"""What the acts do to the cluster: an ordinary client, nothing behind the scheduler's back."""

import asyncio
import contextlib
from collections.abc import Callable

from kubenexus.client import kinds
from kubenexus.client.calls import STRATEGIC_PATCH
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, delete, evict, patch
from kubenexus.sim.controllers.owner_refs import RESOURCES
from kubenexus.sim.demo.cluster_state import ClusterState, owned_by
from kubenexus.sim.demo.manifests import Manifest

NAMESPACE = "default"
_KINDS = {each.kind: each for each in (kinds.PODS, kinds.SERVICES, *RESOURCES.values())}


class ExpectationFailed(Exception):
    """The story did not come true: what was expected, and what was there instead."""

    def __init__(self, expected: str, saw: str) -> None:
        super().__init__(f"expected {expected}, saw {saw}")


class DemoClient:
    """`pace` is how many seconds of a human's attention a second takes; 0: nobody watches, nothing waits."""

    def __init__(self, client: ApiClient, scene: ClusterState, patience: float, pace: float = 0.0) -> None:
        self._client, self.scene, self._patience, self._pace = client, scene, patience, pace
        self.moved = 0

    async def apply(self, *manifests: Manifest) -> None:
        for each in manifests:
            await self._client.send(create(_KINDS[each["kind"]], each, NAMESPACE))

    async def scale(self, kind: ApiResource, name: str, replicas: int) -> None:
        await self._client.send(patch(kind, NAMESPACE, name, {"spec": {"replicas": replicas}}))

    async def cordon(self, node: str) -> None:
        body = {"spec": {"unschedulable": True}}
        await self._client.send(patch(kinds.NODES, "", node, body, content_type=STRATEGIC_PATCH))

    async def drain(self, node: str) -> int:
        """Evicts who is there, as `kubectl drain --ignore-daemonsets` does. Returns how many had to go."""
        leaving = [pod for pod in self.scene.on(node) if not owned_by(pod, "DaemonSet")]
        for pod in leaving:
            await self._client.send(evict(NAMESPACE, pod.metadata.name, pod.metadata.uid))
        self.moved += len(leaving)
        return len(leaving)

    async def end(self, app: str) -> float:
        """All pods of an app go at once. Returns when they were asked to."""
        began = self.scene.now()
        for pod in self.scene.of(app):
            meta = pod.metadata
            await self._client.send(delete(kinds.PODS, NAMESPACE, meta.name, meta.uid, grace_seconds=0))
        return began

    async def until(self, expected: str, saw: Callable[[], str]) -> None:
        """Looks until it is true: `saw` says what is there instead, and nothing then. Raises ExpectationFailed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while saw():
                    await self.scene.change()
                return
        if found := saw():
            raise ExpectationFailed(expected, f"{found} after {self._patience:g} s")

    async def pause(self, seconds: float) -> None:
        """So that a human can follow."""
        if self._pace:
            await asyncio.sleep(seconds * self._pace)


def expect(true: bool, expected: str, saw: str) -> None:
    """What must hold now. Raises ExpectationFailed."""
    if not true:
        raise ExpectationFailed(expected, saw)
