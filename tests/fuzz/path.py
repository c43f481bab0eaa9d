"""The whole path in small: bytes come in, an object meets the ledger, a pod is decided on, a sentence comes out."""

import json
from typing import Any

from kubenexus.api.codec import Unreadable, decode_list, read_object
from kubenexus.api.core import Node, Pod
from kubenexus.base.errors import Malformed
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger

Json = dict[str, Any]


def a_node(name: str = "n1", **allocatable: Any) -> Json:
    offered = {"cpu": "8", "memory": "32Gi", "pods": "110", **allocatable}
    return {"metadata": {"name": name, "labels": {"zone": "a"}}, "status": {"allocatable": offered}}


def a_pod(name: str = "p", requests: Any = None, *, node: str = "", **spec: Any) -> Json:
    asked = {"cpu": "1", "memory": "1Gi"} if requests is None else requests
    containers = [{"name": "c", "resources": {"requests": asked}}]
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"containers": containers, **({"nodeName": node} if node else {}), **spec},
    }


def dumped(thing: Any) -> bytes:
    return thing if isinstance(thing, bytes) else json.dumps(thing).encode()


class Loop:
    """What the running scheduler does with each event. `refused` are the messages that would become events."""

    def __init__(self, *nodes: Any) -> None:
        self.ledger = Ledger()
        self.planner = Planner(profile_plugins())
        self.refused: list[str] = []
        self.waiting: dict[str, Pod] = {}
        for node in nodes or (a_node(),):
            self.node(node)

    def node(self, thing: Any) -> None:
        found = read_object(dumped(thing), Node)
        if isinstance(found, Unreadable):
            self.refused.append(str(found.error))
        else:
            self._tell(self.ledger.upsert_node, found)

    def pod(self, thing: Any) -> None:
        self._pod(read_object(dumped(thing), Pod))

    def pods(self, *things: Any) -> None:
        """A page of a list."""
        body = b'{"kind":"PodList","items":[' + b",".join(map(dumped, things)) + b"]}"
        page = decode_list(body, Pod)
        for found in page.items:
            self._pod(found)
        for lost in page.unreadable:
            self._pod(lost)

    def decide(self, name: str = "p") -> Decision:
        """For a pod that waits; committed if it was placed."""
        job = Job.of(self.waiting[f"ns/{name}"])
        decision = self.planner.decide(job, self.ledger.snapshot(), 0.0)
        if decision.placed:
            commit(decision, job, self.ledger, 0.0)
        return decision

    def used(self, resource: str, node: str = "n1") -> int:
        columns = self.ledger.nodes
        return int(columns.resources.used[columns.resources.index[resource], columns.row_of[node]])

    def _pod(self, found: Pod | Unreadable) -> None:
        if isinstance(found, Unreadable):
            self.refused.append(str(found.error))
            self.ledger.block_unreadable_pod(f"{found.namespace}/{found.name}", found.node)
            self.waiting.pop(f"{found.namespace}/{found.name}", None)
        elif self._tell(self.ledger.upsert_pod, found) and not found.spec.node_name:
            self.waiting[found.key] = found

    def _tell(self, tell: Any, found: Any) -> bool:
        try:
            tell(found)
        except Malformed as error:
            self.refused.append(str(error))
            return False
        return True
