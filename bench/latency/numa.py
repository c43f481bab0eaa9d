"""Nodes that report their NUMA nodes, and pods that their kubelets align: the reports change as pods are bound."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import msgspec
import yaml

from bench.soak.churn import insist
from kubenexus.api.core import Container, Pod, PodSpec, ResourceRequirements
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.numa.machine import Kubelet
from kubenexus.client import kinds
from kubenexus.client.calls import Call
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, patch
from kubenexus.sim.kubelets.node_topologies import machine_of
from kubenexus.sim.kubelets.numa_kubelet import NumaKubelet

CRD = Path(__file__).parents[2] / "examples" / "numa" / "crd.yaml"
DEFINITIONS = ApiResource("CustomResourceDefinition", "customresourcedefinitions", group="apiextensions.k8s.io")
PUBLISH = 10.0  # seconds between reports of a node, as exporters have it
SIZES = (1, 1, 2, 4)  # CPUs; by turns, so that there are a few pod classes
_AT_ONCE = 50
_TURNS = 100  # in which reports are published


class NumaNodes:
    """The kubelets of all nodes, as far as reports need them."""

    def __init__(self, client: ApiClient, nodes: int, zones: int, amounts: dict[str, str]) -> None:
        kubelet = Kubelet("single-numa-node", static_cpus=True, static_memory=True)
        machine = machine_of(amounts, zones)
        self._client = client
        self._kubelets = {f"n{number}": NumaKubelet(f"n{number}", kubelet, machine) for number in range(nodes)}
        self._changed: set[str] = set()

    async def furnish(self) -> None:
        """Makes the kind, and the first report of each node."""
        await self._send(create(DEFINITIONS, yaml.safe_load(CRD.read_text(encoding="utf-8"))))
        names = list(self._kubelets)
        for first in range(0, len(names), _AT_ONCE):
            calls = [create(kinds.NODE_RESOURCE_TOPOLOGIES, self._report(name)) for name in names[first:][:_AT_ONCE]]
            await asyncio.gather(*map(self._send, calls))

    def bound(self, pod: str, node: str, cpus: int) -> None:
        """A pod came to its kubelet."""
        amounts: dict[str, str | int | float] = {"cpu": str(cpus), "memory": f"{cpus}Gi"}
        main = Container(name="main", resources=ResourceRequirements(requests=amounts, limits=amounts))
        self._kubelets[node].admit(Pod(metadata=ObjectMeta(name=pod), spec=PodSpec(containers=[main])))
        self._changed.add(node)

    async def run(self) -> None:
        """Publishes what changed, until cancelled: each node at its own moment of the ten seconds, since exporters are
        not started together."""
        names = list(self._kubelets)
        for turn in itertools.cycle(range(_TURNS)):
            await asyncio.sleep(PUBLISH / _TURNS)
            for name in self._changed.intersection(names[turn::_TURNS]):
                self._changed.discard(name)
                await self._send(patch(kinds.NODE_RESOURCE_TOPOLOGIES, "", name, self._report(name)))

    def _report(self, name: str) -> dict[str, Any]:
        report: dict[str, Any] = msgspec.to_builtins(self._kubelets[name].report())
        return {
            "apiVersion": "topology.node.k8s.io/v1alpha2",
            "kind": "NodeResourceTopology",
            "metadata": {"name": name},
            "zones": report["zones"],
            "attributes": report["attributes"],
        }

    async def _send(self, call: Call) -> None:
        await insist(lambda: self._client.send(call, timeout=60))


def cpus_of(number: int) -> int:
    """Returns the CPUs of the pod with this number."""
    return SIZES[number % len(SIZES)]
