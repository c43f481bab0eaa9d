"""The one control plane that all contestants share: nodes are made once, pods for each run in a namespace of its own,
and what a run leaves behind is removed before the next."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.live import cases
from bench.live.cases import Case
from bench.live.witness import PREFIX
from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call, Uncertain, Unreachable
from kubenexus.client.client_config import ClientOptions, load_client_config
from kubenexus.client.kinds import ApiResource
from kubenexus.client.rate_limiter import RateLimiter
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, get, list_call, patch
from kubenexus.testing.controlplane import ControlPlane
from tests.e2e.controlplane import build

CLOCK = WallClock()
CREATORS = 64
CANARY = "canary"
START_SECONDS = 300.0  # of the API server, beside other work
FLAGS = ("--delete-collection-workers=4",)  # so that cleaning up takes less of an hour
# For gangs only, so that everything else is measured on a control plane as it comes. Nobody here would take the
# protection off a PodGroup that is to be deleted.
GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling")
GANG_FLAGS = (
    f"--feature-gates={','.join(f'{gate}=true' for gate in GATES)}",
    "--runtime-config=scheduling.k8s.io/v1beta1=true",
    "--disable-admission-plugins=ServiceAccount,PodGroupProtection",
)


class Stage:
    """`sent` counts the bytes of what was created here, since the API server does not tell us from the contestant.
    `gates` are open for gangs; then nodes have racks, too."""

    def __init__(self, plane: ControlPlane, client: ApiClient, gates: tuple[str, ...] = ()) -> None:
        self.plane, self._client, self.gates = plane, client, gates
        self.sent = 0
        self._runs = self._nodes = 0

    async def furnish(self, nodes: int) -> None:
        """Nodes without the taint of freshness, and the class of the churning pod."""
        self._nodes = nodes
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 10}
        await self._create(kinds.PRIORITY_CLASSES, urgent | {"metadata": {"name": cases.URGENT}})

        async def node(number: int) -> None:
            made = cases.node(number, racks=bool(self.gates))
            await self._create(kinds.NODES, made)
            untainted = patch(kinds.NODES, "", made["metadata"]["name"], {"spec": {"taints": None}})
            await self._client.send(untainted, timeout=60)

        await at_most(CREATORS, node, nodes)

    async def namespace(self) -> str:
        """A new one, empty."""
        self._runs += 1
        name = f"run-{self._runs}"
        await self._create(kinds.NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    async def pods(self, case: Case, namespace: str, count: int) -> None:
        """As fast as the server takes them."""
        made = cases.members(case, PREFIX, count)

        async def pod(number: int) -> None:
            await self._create(kinds.PODS, made[number], namespace)

        await at_most(CREATORS, pod, count)

    async def devices(self, each: int) -> None:
        """So many devices on each node, and the controller that makes claims from templates."""
        controller = "--controllers=resourceclaim-controller"
        self.plane.start_controllers(controller, "--kube-api-qps=5000", "--kube-api-burst=5000")
        await self._create(kinds.DEVICE_CLASSES, cases.device_class())

        async def devices(number: int) -> None:
            await self._create(kinds.RESOURCE_SLICES, cases.device_slice(number, each))

        await at_most(CREATORS, devices, self._nodes)

    async def claim_template(self, case: Case, namespace: str) -> None:
        if case.devices:
            await self._create(kinds.RESOURCE_CLAIM_TEMPLATES, cases.claim_template(), namespace)

    async def until_claimed(self, case: Case, namespace: str, count: int) -> None:
        """Until the controller has made a claim for each pod, and has told the pod so."""
        while case.devices:
            listed = await self._client.send(list_call(kinds.PODS, namespace=namespace), timeout=120)
            pods = msgspec.json.decode(listed)["items"]
            if sum(bool(each["status"].get("resourceClaimStatuses")) for each in pods) >= count:
                return
            await asyncio.sleep(0.5)

    async def victims(self, case: Case, namespace: str) -> None:
        """Pods of lower priority on all nodes."""

        async def pod(number: int) -> None:
            made = cases.victim(number)
            made["spec"]["nodeName"] = cases.node(number % self._nodes)["metadata"]["name"]
            await self._create(kinds.PODS, made, namespace)

        await at_most(CREATORS, pod, case.victims * self._nodes)

    async def evicted(self, case: Case, namespace: str) -> int:
        """How many of them are gone."""
        if not case.victims:
            return 0
        listed = await self._client.send(list_call(kinds.PODS, namespace=namespace), timeout=120)
        names = [each["metadata"]["name"] for each in msgspec.json.decode(listed)["items"]]
        left = sum(str(name).startswith(cases.VICTIM) for name in names)
        return case.victims * self._nodes - left

    async def pod_groups(self, case: Case, namespace: str, count: int) -> None:
        """Those of so many pods; none if they are in no gang."""
        made = cases.pod_groups(case, count)

        async def group(number: int) -> None:
            await self._create(kinds.POD_GROUPS, made[number], namespace)

        await at_most(CREATORS, group, len(made))

    async def scattered(self, case: Case, namespace: str) -> int:
        """Of how many gangs that were to be in one rack, and are all bound, that is not so."""
        if case.gangs is None or not case.gangs.rack:
            return 0
        listed = await self._client.send(list_call(kinds.PODS, namespace=namespace), timeout=120)
        return cases.scattered(msgspec.json.decode(listed)["items"])

    async def until_awake(self, namespace: str, program_runs: Callable[[], bool]) -> None:
        """A pod that is bound shows that the contestant has read everything and has begun."""
        await self._create(kinds.PODS, cases.pod(cases.CASES["basic"], CANARY), namespace)
        while b'"nodeName"' not in await self._client.send(get(kinds.PODS, namespace, CANARY)):
            if not program_runs():
                return  # the run will say so
            await asyncio.sleep(0.1)

    async def clean(self, namespace: str) -> None:
        """No pod, PodGroup, claim or event of the run is left. The server gives up on a collection that takes it too
        long, and goes on where it stopped when it is asked again."""
        groups = [kinds.POD_GROUPS] if self.gates else []
        for resource in (kinds.PODS, *groups, kinds.RESOURCE_CLAIMS, kinds.EVENTS):
            left = True
            while left:
                with contextlib.suppress(ApiError, Uncertain, Unreachable):
                    everything = f"{resource.at(namespace)}?gracePeriodSeconds=0"
                    await self._client.send(Call("DELETE", everything), timeout=120)
                    page = await self._client.send(list_call(resource, namespace=namespace, limit=1), timeout=60)
                    left = bool(msgspec.json.decode(page)["items"])

    @contextlib.asynccontextmanager
    async def churning(self, namespace: str, wanted: bool) -> AsyncIterator[None]:
        """Meanwhile a node, a pod and a service are made, and removed, every second."""
        task = asyncio.create_task(self._churn(namespace)) if wanted else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await self._remove_churn(namespace)

    async def _churn(self, namespace: str) -> None:
        while True:
            await self._create(kinds.NODES, cases.churn_node())
            await self._create(kinds.PODS, cases.churn_pod(), namespace)
            await self._create(kinds.SERVICES, cases.churn_service(), namespace)
            await asyncio.sleep(1)
            await self._remove_churn(namespace)
            await asyncio.sleep(1)

    async def _remove_churn(self, namespace: str) -> None:
        for resource, name in (
            (kinds.NODES, "node-churn"), (kinds.PODS, "pod-churn"), (kinds.SERVICES, "service-churn"),
        ):  # fmt: skip
            with contextlib.suppress(ApiError):
                where = resource.at(namespace if resource.namespaced else "", name)
                await self._client.send(Call("DELETE", f"{where}?gracePeriodSeconds=0"), timeout=60)

    async def make(self, resource: ApiResource, body: dict[str, Any], namespace: str = "") -> None:
        """One object of any kind."""
        await self._create(resource, body, namespace)

    async def read(self, call: Call) -> bytes:
        return await self._client.send(call, timeout=120)

    async def untaint(self) -> None:
        """Takes the taint of freshness off all nodes."""
        listed = msgspec.json.decode(await self.read(list_call(kinds.NODES)))
        names = [each["metadata"]["name"] for each in listed["items"]]

        async def untaint(number: int) -> None:
            await self._client.send(patch(kinds.NODES, "", names[number], {"spec": {"taints": None}}), timeout=60)

        await at_most(CREATORS, untaint, len(names))

    async def _create(self, resource: ApiResource, body: dict[str, Any], namespace: str = "") -> None:
        """Until it is there, however busy the server is."""
        call = create(resource, body, namespace)
        self.sent += len(call.body)
        while True:
            try:
                await self._client.send(call, timeout=60)
                return
            except ApiError as error:
                if error.code == 409:
                    return  # an earlier try went through
                if error.code != 429 and error.code < 500:
                    raise
            except (Uncertain, Unreachable):
                pass
            await asyncio.sleep(0.2)


@contextlib.asynccontextmanager
async def staged(*, gangs: bool = False) -> AsyncIterator[Stage]:
    """A control plane that ends with the body. Nothing is written outside a folder that is removed, too. `gangs`: it
    knows PodGroups."""
    flags = (*FLAGS, *(GANG_FLAGS if gangs else ()))
    with (
        tempfile.TemporaryDirectory(prefix="kubenexus-live-") as folder,
        ControlPlane(build.assets(), Path(folder), apiserver_flags=flags, start_seconds=START_SECONDS) as plane,
    ):
        access = load_client_config(ClientOptions(kubeconfig=str(plane.kubeconfig())), CLOCK)
        client = ApiClient(access, CLOCK, rate_limiter=RateLimiter(CLOCK, qps=-1))
        try:
            yield Stage(plane, client, GATES if gangs else ())
        finally:
            await client.close()


async def at_most(workers: int, do: Callable[[int], Awaitable[None]], count: int) -> None:
    """Everything from 0 to `count`, so many at a time."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await do(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(workers):
            tasks.create_task(work())
