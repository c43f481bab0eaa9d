"""Words for tests of the scheduler: start one, make pods, ask where they are."""

import itertools
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess, Object, Objects

NAME = "kubenexus-scheduler"
NUMBERS = itertools.count(1)
Start = Callable[..., ManagedProcess]


class Starter:
    """Starts schedulers, and ends them with the test."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._started: list[ManagedProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for program in self._started:
            program.stop()

    def __call__(self, *options: str, kubeconfig: object = None, wait: bool = True) -> ManagedProcess:
        """`kubenexus run` with these options; alone and without ports, unless they say otherwise."""
        file = kubeconfig or self._plane.kubeconfig()
        usual = [f"--kubeconfig={file}", "--secure-port=0", "--leader-elect=false"]
        given = {option.partition("=")[0] for option in options}
        kept = [option for option in usual if option.partition("=")[0] not in given]
        command = [sys.executable, "-m", "kubenexus", "run", *kept, *options]
        program = self._plane.family.start(command, f"scheduler-{next(NUMBERS)}")
        self._started.append(program)
        if wait:
            program.until(lambda: schedules(program))
        return program


def schedules(program: ManagedProcess) -> bool:
    """Whether it leads, has seen everything and decides."""
    return '"Scheduling"' in program.said()


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def a_pod(name: str, cpu: str = "", scheduler: str = NAME, **spec: Any) -> Object:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    container = {"name": "main", "image": "app:1", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


def a_node(name: str, cpu: str = "4", pods: str = "110", **labels: str) -> Object:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}],
        },
    }


def make_nodes(cluster: ClusterClient, *nodes: Object) -> None:
    """Nodes without agents: there, and without the taint of freshness."""
    for node in nodes:
        cluster.create(node)
        cluster.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"taints": None}})


def node_of(objects: Objects, name: str) -> str:
    return str(objects[name]["spec"].get("nodeName", ""))


def placed(objects: Objects) -> dict[str, str]:
    """Where each pod is that has a node."""
    return {name: node for name in objects if (node := node_of(objects, name))}


def condition(objects: Objects, name: str, kind: str = "PodScheduled") -> Object:
    found = [each for each in objects[name]["status"].get("conditions", []) if each["type"] == kind]
    return found[0] if found else {}


def events(cluster: ClusterClient, namespace: str, pod: str) -> list[Object]:
    """What was said about a pod, the oldest first."""
    found = cluster.objects(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events").values()
    about = [each for each in found if each["regarding"]["name"] == pod]
    return sorted(about, key=lambda each: str(each["eventTime"]))
