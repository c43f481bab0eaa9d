"""The cluster of one seed: its nodes, its pods, who goes and who comes again; and nothing of it is left afterwards."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from tests.chaos.api_client import ChaosClient, Wish
from tests.chaos.large_pods import a_monster
from tests.chaos.observed_cluster import LEAST, NAME, STUBBORN, PodSeen

Object = dict[str, Any]
SCHEDULER = "kubenexus-scheduler"
RIVAL = "rival"
GUARDED = "chaos/guarded"  # a label: a disruption budget protects the pod
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NODES = "/api/v1/nodes"
AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}


class SeedCluster:
    def __init__(self, hands: ChaosClient, namespace: str) -> None:
        self._hands, self.namespace = hands, namespace
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/kubenexus-scheduler"
        self.budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        self.high = f"{namespace}-high"  # a PriorityClass
        self._number, self._cpu = 0, 0
        self._nodes: list[str] = []

    def build(self, nodes: int, cpu: int) -> None:
        """Nodes without agents: there, ready, and without the taint of freshness."""
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self._hands.one(Wish("POST", "/api/v1/namespaces", space))
        self._hands.one(Wish("POST", CLASSES, a_class(self.high)))
        self._cpu = cpu
        self._add(nodes)

    def touch_nodes(self, *, grow: bool) -> None:
        """Somebody writes on every node, as kubelets do; and perhaps there is one more."""
        note = {"metadata": {"annotations": {"chaos/touched": str(self._number)}}}
        self._hands.do(Wish("PATCH", f"{NODES}/{name}", note) for name in self._nodes)
        if grow:
            self._add(1)

    def send(self, count: int, sizes: Random) -> None:
        """So many pods come together; most ask for one core, some for more, a few for none."""
        self._hands.do([Wish("POST", self.pods, a_pod(name, _cpu(sizes))) for name in self._names(count)])

    def send_high(self, count: int, sizes: Random) -> None:
        """So many pods of high priority."""
        pods = [a_pod(f"high-{name}", _cpu(sizes), priority_class=self.high) for name in self._names(count)]
        self._hands.do([Wish("POST", self.pods, pod) for pod in pods])

    def send_victims(self, count: int, sizes: Random) -> None:
        """So many pods of low priority. A budget protects some, the kubelet does not end some."""
        for name in self._names(count):
            pod = a_pod(name, _cpu(sizes))
            pod["metadata"]["labels"] = {
                **({GUARDED: "yes"} if sizes.random() < 0.3 else {}),
                **({STUBBORN: "yes"} if sizes.random() < 0.1 else {}),
            }
            self._hands.one(Wish("POST", self.pods, pod))
            self._hands.one(Wish("PATCH", f"{self.pods}/{name}/status", {"status": {"phase": "Running"}}))

    def allow_disruptions(self, count: int) -> None:
        """The budget of guarded pods allows so many now. There is no disruption controller: we write its status."""
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guard"}}
        spec = {"selector": {"matchLabels": {GUARDED: "yes"}}, "minAvailable": 1}
        self._hands.one(Wish("POST", self.budgets, {**budget, "spec": spec}))
        status = {"disruptionsAllowed": count, "observedGeneration": 1, "disruptedPods": None}
        more = {"currentHealthy": count + 1, "desiredHealthy": 1, "expectedPods": count + 1}
        self._hands.one(Wish("PATCH", f"{self.budgets}/guard/status", {"status": {**status, **more}}))

    def part(self, leaving: Iterable[PodSeen], rng: Random) -> None:
        """Some are deleted, some end, and some are made again under their old names."""
        for pod in leaving:
            name = pod.key.partition("/")[2]
            path, fate = f"{self.pods}/{name}", rng.choice(("deleted", "deleted", "ended", "made again"))
            if pod.gang:  # its controller creates it again
                fate = "deleted"
            if fate == "ended":
                self._hands.one(Wish("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}}))
                continue
            self._hands.one(Wish("DELETE", path, AT_ONCE))
            if fate == "made again" and pod.scheduler == SCHEDULER:
                self._hands.one(Wish("POST", self.pods, a_pod(name, _cpu(rng))))

    def send_monsters(self, count: int, rng: Random) -> None:
        """So many pods of monstrous size."""
        wishes = [Wish("POST", self.pods, a_monster(f"monster-{name}", SCHEDULER, rng)) for name in self._names(count)]
        codes = self._hands.do(wishes)
        if any(code >= 300 for code in codes):
            raise AssertionError(f"the API server refused a monster: {codes}")

    def create_members(self, gang: str, minimum: int, cpu: str, names: Iterable[str], *, high: bool = False) -> None:
        """Members of a gang, with a controller that would create them again. Those that exist stay as they are."""
        wanted = self.high if high else ""
        self._hands.do([Wish("POST", self.pods, a_member(name, gang, minimum, cpu, wanted)) for name in names])

    def delete(self, names: Iterable[str]) -> None:
        """At once, as when the kubelet has ended them."""
        self._hands.do([Wish("DELETE", f"{self.pods}/{name}", AT_ONCE) for name in names])

    def start(self, name: str) -> None:
        """As the kubelet reports it."""
        self._hands.one(Wish("PATCH", f"{self.pods}/{name}/status", {"status": {"phase": "Running"}}))

    def bind(self, pod: str, node: str) -> int:
        """As another scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        return self._hands.one(Wish("POST", f"{self.pods}/{pod}/binding", binding))

    def create(self, name: str, cpu: str, scheduler: str) -> None:
        self._hands.one(Wish("POST", self.pods, a_pod(name, cpu, scheduler)))

    def steal_lease(self, thief: str) -> None:
        """Somebody who does not keep to the rules takes it, for two seconds."""
        self._hands.one(Wish("PATCH", self.lease, {"spec": {"holderIdentity": thief, "leaseDurationSeconds": 2}}))

    def clear(self) -> None:
        """Deleted and declared empty, which else a controller would do. Events go by themselves after an hour."""
        self._hands.one(Wish("DELETE", self.pods, AT_ONCE))
        self._hands.one(Wish("DELETE", NODES))
        self._hands.one(Wish("DELETE", self.lease))
        self._hands.one(Wish("DELETE", self.budgets))
        self._hands.one(Wish("DELETE", f"{CLASSES}/{self.high}"))
        path = f"/api/v1/namespaces/{self.namespace}"
        self._hands.one(Wish("DELETE", path))
        empty = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self._hands.one(Wish("PUT", f"{path}/finalize", {**empty, "spec": {"finalizers": []}}))

    def _add(self, count: int) -> None:
        names = [f"{self.namespace}-n{len(self._nodes) + number}" for number in range(count)]
        self._hands.do(Wish("POST", NODES, a_node(name, self._cpu)) for name in names)
        self._hands.do(Wish("PATCH", f"{NODES}/{name}", {"spec": {"taints": None}}) for name in names)
        self._nodes += names

    def _names(self, count: int) -> Iterator[str]:
        for _ in range(count):
            self._number += 1
            yield f"p{self._number}"


def a_pod(name: str, cpu: str, scheduler: str = SCHEDULER, priority_class: str = "") -> Object:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    containers = [{"name": "main", "image": "app:1", "resources": resources}]
    spec: Object = {"schedulerName": scheduler, "containers": containers}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def a_class(name: str) -> Object:
    meta = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": 1000}


def a_member(name: str, gang: str, minimum: int, cpu: str, priority_class: str = "") -> Object:
    pod = a_pod(name, cpu, priority_class=priority_class)
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": gang, "uid": f"uid-of-{gang}"}
    pod["metadata"]["labels"] = {NAME: gang, LEAST: str(minimum)}
    pod["metadata"]["ownerReferences"] = [{**job, "controller": True}]
    return pod


def a_node(name: str, cpu: int) -> Object:
    has = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True", "reason": "Ready"}]
    status = {"capacity": has, "allocatable": has, "conditions": ready}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def _cpu(rng: Random) -> str:
    return rng.choice(("1", "1", "1", "1", "2", "500m"))
