"""The load: pods and gangs are created, and a watch tells when each is bound as a whole. All moments are of this one
clock."""

import asyncio
from typing import Any

import msgspec

from bench.latency.numa import NumaNodes
from bench.soak.churn import NAMESPACE, insist
from bench.soak.lookout import CLOCK, Lookout, Seen
from bench.soak.objects import SCHEDULER
from kubenexus.client import kinds
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create

NAME = "pod-group.scheduling.kubenexus.io/name"
LEAST = "pod-group.scheduling.kubenexus.io/min-available"


class Wait(msgspec.Struct, frozen=True):
    """Of one gang or pod, in seconds since 1970: the first create is sent, the last create is sent, the watch tells of
    the last bind. That the last pod exists is not known before the server has answered; but an answer may be read
    late, and what is being sent was not there before."""

    began: float
    last: float
    bound: float

    @property
    def seconds(self) -> float:
        """From its last pod's creation, that included, to its last bind."""
        return self.bound - self.last


class Load:
    """Gangs have the labels that docs/gangs.md begins with, and need all their members."""

    def __init__(self, client: ApiClient, numa: NumaNodes | None = None) -> None:
        """`numa` is told where pods with CPUs for themselves are bound."""
        self._client, self._numa = client, numa
        self._cpus: dict[str, int] = {}  # by pod that has some for itself
        self._left: dict[str, set[str]] = {}  # members without a node, by gang
        self._bound: dict[str, asyncio.Future[float]] = {}

    async def run(self) -> None:
        """Watch, until cancelled."""
        await Lookout(self.see).run(self._client)

    async def gang(self, name: str, size: int) -> Wait:
        """Creates it, all members but one at once and then the last, and waits until it is bound."""
        return await self._create(name, [member(name, size, number) for number in range(size)])

    async def pod(self, name: str, app: str, cpus: int = 0) -> Wait:
        """Creates a pod of an app, with so many CPUs for itself, and waits until it is bound."""
        return await self._create(name, [a_pod(f"{name}-0", {"app": app}, cpus)], cpus)

    async def _create(self, name: str, pods: list[dict[str, Any]], cpus: int = 0) -> Wait:
        self._left[name] = {pod["metadata"]["name"] for pod in pods}
        if cpus:
            self._cpus[pods[0]["metadata"]["name"]] = cpus
        bound = self._bound[name] = asyncio.get_running_loop().create_future()
        began = CLOCK.now()
        await asyncio.gather(*(self._make(pod) for pod in pods[:-1]))
        last = CLOCK.now()
        await self._make(pods[-1])
        return Wait(began, last, await bound)

    async def _make(self, pod: dict[str, Any]) -> None:
        call = create(kinds.PODS, pod, NAMESPACE)
        await insist(lambda: self._client.send(call, timeout=60))

    def see(self, pod: Seen) -> None:
        """A pod as the watch tells it."""
        gang = pod.metadata.name.rpartition("-")[0]
        left = self._left.get(gang)
        if left is None or not pod.spec.node_name:
            return
        seen = CLOCK.now()  # what its kubelet then does is not part of the wait
        left.discard(pod.metadata.name)
        if not left:
            del self._left[gang]
            self._bound.pop(gang).set_result(seen)
        cpus = self._cpus.pop(pod.metadata.name, 0)
        if cpus and self._numa is not None:
            self._numa.bound(pod.metadata.name, pod.spec.node_name, cpus)


def member(gang: str, size: int, number: int) -> dict[str, Any]:
    return a_pod(f"{gang}-{number}", {NAME: gang, LEAST: str(size)})


def a_pod(name: str, labels: dict[str, str], cpus: int = 0) -> dict[str, Any]:
    """A pod; with CPUs for itself it is Guaranteed, and its kubelet aligns it."""
    own = {"cpu": str(cpus), "memory": f"{cpus}Gi"}
    amounts = {"requests": own, "limits": own} if cpus else {"requests": {"cpu": "100m", "memory": "128Mi"}}
    requests = {"resources": amounts}
    spec = {"schedulerName": SCHEDULER, "containers": [{"name": "main", "image": "app:1", **requests}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
