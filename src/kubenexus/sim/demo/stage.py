"""What the acts do to the cluster and see of it: an ordinary client, nothing behind the scheduler's back."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kubenexus.base.clock import Clock
from kubenexus.client import kinds
from kubenexus.client.calls import STRATEGIC_PATCH
from kubenexus.client.transport import Client
from kubenexus.client.verbs import create, delete, listing, patch
from kubenexus.sim.marks import RUN_SECONDS

SCHEDULER = "kubenexus-scheduler"
NAMESPACE = "default"
Pod = dict[str, Any]
Pods = Mapping[str, Pod]


class NotTrue(Exception):
    """The story did not come true: which promise, and what was there instead."""


class Stage:
    def __init__(self, client: Client, clock: Clock, patience: float) -> None:
        self._client, self._clock, self.patience = client, clock, patience
        self.created: dict[str, float] = {}
        self.bound: dict[str, float] = {}

    async def pod(
        self, name: str, cpu: str, *, app: str = "", gpu: int = 0, seconds: float | None = None, **spec: Any
    ) -> None:
        """A pod that asks for so much; with `seconds` it is done after so long."""
        asked = {"cpu": cpu, "memory": "1Gi", **({"nvidia.com/gpu": str(gpu)} if gpu else {})}
        container = {"name": "main", "image": "app:1", "resources": {"requests": asked, "limits": asked}}
        notes = {} if seconds is None else {RUN_SECONDS: str(seconds)}
        meta = {"name": name, "labels": {"app": app or name}, "annotations": notes}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
        tolerated = [{"key": "nvidia.com/gpu", "operator": "Exists"}] if gpu else []
        body["spec"] = {"schedulerName": SCHEDULER, "containers": [container], "tolerations": tolerated, **spec}
        self.created[name] = self._clock.now()
        await self._client.send(create(kinds.PODS, body, NAMESPACE))

    async def service(self, name: str) -> None:
        """Selects the pods with this `app`: the scheduler spreads them."""
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
        spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
        await self._client.send(create(kinds.SERVICES, {**body, "spec": spec}, NAMESPACE))

    async def cordon(self, node: str) -> None:
        body = {"spec": {"unschedulable": True}}
        await self._client.send(patch(kinds.NODES, "", node, body, content_type=STRATEGIC_PATCH))

    async def remove(self, pod: Pod) -> None:
        meta = pod["metadata"]
        await self._client.send(delete(kinds.PODS, NAMESPACE, meta["name"], meta["uid"], grace_seconds=0))

    async def pods(self, app: str = "") -> Pods:
        items = await self._list(kinds.PODS)
        found = {each["metadata"]["name"]: each for each in items}
        for name, pod in found.items():
            if pod["spec"].get("nodeName"):
                self.bound.setdefault(name, self._clock.now())
        return {name: pod for name, pod in found.items() if not app or pod["metadata"]["labels"].get("app") == app}

    async def zones(self) -> dict[str, str]:
        """Each node's zone."""
        found = await self._list(kinds.NODES)
        return {node["metadata"]["name"]: node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in found}

    async def until(self, app: str, true: Callable[[Pods], bool], promise: str) -> Pods:
        """Look until it is true. Raises NotTrue when patience is at an end."""
        deadline = self._clock.now() + self.patience
        while True:
            pods = await self.pods(app)
            if true(pods):
                return pods
            if self._clock.now() > deadline:
                placed = sum(1 for pod in pods.values() if pod["spec"].get("nodeName"))
                raise NotTrue(f"{promise}: not within {self.patience:g} s; {placed} of {len(pods)} pods have a node")
            await asyncio.sleep(0.02)

    async def _list(self, kind: kinds.Resource) -> list[dict[str, Any]]:
        answer = msgspec.json.decode(await self._client.send(listing(kind)))
        return list(answer["items"])


def node_of(pod: Pod) -> str:
    return str(pod["spec"].get("nodeName", ""))


def all_placed(count: int) -> Callable[[Pods], bool]:
    return lambda pods: len(pods) == count and all(node_of(pod) for pod in pods.values())


def refusal(pod: Pod) -> str:
    """Why it waits, as its condition says."""
    said = [each for each in pod.get("status", {}).get("conditions", ()) if each["type"] == "PodScheduled"]
    return str(said[0].get("message", "")) if said and said[0]["status"] == "False" else ""
