"""NUMA nodes of simulated nodes: pods are admitted as a kubelet would, and each node reports what is left.

The state is the nodes' own: CPU numbers, cores, devices and memory blocks. Their reports (NodeResourceTopology) have
sums by NUMA node, as those of an exporter, and are published now and then.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.api import core
from kubenexus.api.codec import encode
from kubenexus.api.numa.machine import Kubelet, Machine
from kubenexus.api.numa.refusal import OUT_OF
from kubenexus.api.quantity import to_milli, to_units
from kubenexus.api.resource_names import CPU, MEMORY, PODS, is_extended
from kubenexus.api.resources import demand
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import ApiError, Call
from kubenexus.sim.kubelets.numa_kubelet import NumaKubelet, a_machine
from kubenexus.sim.kubelets.pod_status import KubeletRejection
from kubenexus.sim.kubelets.types import Node, Pod


class NumaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How nodes are built and configured. `publish` is the time between two reports in seconds."""

    zones: int = 2
    kubelet: Kubelet = Kubelet("single-numa-node", static_cpus=True, static_memory=True)
    publish: float = 10.0


class NodeTopologies:
    """The kubelets' managers of all nodes, by name of the node."""

    def __init__(self, settings: NumaSettings) -> None:
        self.settings = settings
        self._kubelets: dict[str, NumaKubelet] = {}
        self._pods: dict[str, tuple[str, core.Pod]] = {}  # by uid: node, and the pod that it admitted
        self._created: set[str] = set()
        self._sending: dict[str, bytes] = {}
        self._sent: dict[str, bytes] = {}

    def admit(self, pod: Pod, node: Node) -> KubeletRejection | None:
        """Allocates for a pod, or says why its node rejects it. A pod that was admitted before stays so."""
        name, uid = node.metadata.name, pod.metadata.uid
        if uid in self._pods:
            return None
        kubelet, asked = self._kubelet(node), _api_pod(pod)
        lacking = self._lacking(asked, node)
        said = kubelet.admit(asked)
        if said.admitted and lacking:
            kubelet.remove(asked.key)
        if not said.admitted or lacking:
            return KubeletRejection(said.reason or lacking, said.message)
        self._pods[uid] = name, asked
        return None

    def adopt(self, pod: Pod, node: Node) -> None:
        """Takes over a pod that runs already: the agents were started again."""
        if pod.metadata.uid not in self._pods and self._kubelet(node).admit(_api_pod(pod)).admitted:
            self._pods[pod.metadata.uid] = node.metadata.name, _api_pod(pod)

    def release(self, uid: str) -> None:
        """Gives back what a pod held."""
        name, pod = self._pods.pop(uid, ("", None))
        if pod is not None and name in self._kubelets:
            self._kubelets[name].remove(pod.key)

    def forget(self, name: str) -> None:
        """A node was deleted; its report goes with it, since the node owns it."""
        self._kubelets.pop(name, None)
        self._created.discard(name)
        self._sent.pop(name, None)

    # --- reports --------------------------------------------------------------------------------------------------

    def call(self, node: Node) -> Call | None:
        """Returns the call that publishes the report of a node, or None if nothing changed."""
        name = node.metadata.name
        body = self._body(node)
        self._sending[name] = encode(body)
        if self._sent.get(name) == self._sending[name]:
            return None
        if name in self._created:
            return verbs.patch(kinds.NODE_RESOURCE_TOPOLOGIES, "", name, body)
        return verbs.create(kinds.NODE_RESOURCE_TOPOLOGIES, body)

    def published(self, node: Node, error: Exception | None) -> bool:
        """Records what became of the call. Returns whether it has to be repeated at once."""
        name, code = node.metadata.name, error.code if isinstance(error, ApiError) else 0
        if error is None:
            self._created.add(name)
            self._sent[name] = self._sending[name]
        elif code == 409:
            self._created.add(name)
        elif code == 404:
            self._created.discard(name)
        return code == 409

    def _body(self, node: Node) -> dict[str, Any]:
        report: dict[str, Any] = msgspec.to_builtins(self._kubelet(node).report())
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.metadata.name, "uid": node.metadata.uid}
        return {
            "apiVersion": "topology.node.k8s.io/v1alpha2",
            "kind": "NodeResourceTopology",
            "metadata": {"name": node.metadata.name, "ownerReferences": [owner]},
            "zones": report["zones"],
            "attributes": report["attributes"],
        }

    def _kubelet(self, node: Node) -> NumaKubelet:
        name = node.metadata.name
        if name not in self._kubelets:
            machine = machine_of(node.status.allocatable, self.settings.zones)
            self._kubelets[name] = NumaKubelet(name, self.settings.kubelet, machine)
        return self._kubelets[name]

    def _lacking(self, pod: core.Pod, node: Node) -> str:
        """Returns the reason of the check of totals: `OutOfcpu` and its like."""
        here = [other for name, other in self._pods.values() if name == node.metadata.name]
        if len(here) + 1 > to_units(node.status.allocatable.get(PODS, "110")):
            return OUT_OF + PODS
        used: dict[str, int] = {}
        for each in (*here, pod):
            for resource, amount in demand(each).amounts:
                used[resource] = used.get(resource, 0) + amount
        for resource, amount in used.items():
            text = node.status.allocatable.get(resource)
            if text is None and is_extended(resource):
                continue
            whole = 0 if text is None else to_milli(text) if resource == CPU else to_units(text)
            if amount > whole:
                return OUT_OF + resource
        return ""


def machine_of(allocatable: Mapping[str, str], zones: int) -> Machine:
    """Returns a machine with these amounts, divided evenly among its NUMA nodes. One core is reserved beside them."""
    cpus = to_milli(allocatable.get(CPU, "0")) // 1000 // zones // 2 * 2
    memory = to_units(allocatable.get(MEMORY, "0")) // zones
    devices = {name: to_units(text) // zones for name, text in allocatable.items() if is_extended(name)}
    return a_machine(zones, cpus, memory, devices, reserved=0)


def _api_pod(pod: Pod) -> core.Pod:
    """Returns the pod with the fields that an admission is decided from."""
    return core.Pod(
        metadata=pod.metadata,
        spec=core.PodSpec(
            containers=_containers(pod.spec.containers),
            init_containers=_containers(pod.spec.init_containers),
            resources=pod.spec.resources,
            overhead=pod.spec.overhead,
        ),
    )


def _containers(listed: Any) -> list[core.Container]:
    return [
        core.Container(name=each.name, restart_policy=each.restart_policy, resources=each.resources) for each in listed
    ]
