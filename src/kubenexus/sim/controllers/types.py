"""The fields of pods and nodes that controllers read. With a hundred thousand pods, nothing else is kept."""

from typing import Any

from kubenexus.api.core import Affinity
from kubenexus.api.meta import ApiObject, OwnerReference
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.sim.kubelets import types

Item = dict[str, Any]  # a workload as it is in the store
Key = tuple[str, str]  # its resource (`deployments.apps`) and `namespace/name`

DEPLOYMENTS, REPLICA_SETS = "deployments.apps", "replicasets.apps"
STATEFUL_SETS, DAEMON_SETS, JOBS = "statefulsets.apps", "daemonsets.apps", "jobs.batch"
PODS, NODES = "pods", "nodes"
_OWNERS = {
    ("apps", "Deployment"): DEPLOYMENTS,
    ("apps", "ReplicaSet"): REPLICA_SETS,
    ("apps", "StatefulSet"): STATEFUL_SETS,
    ("apps", "DaemonSet"): DAEMON_SETS,
    ("batch", "Job"): JOBS,
}


class Meta(ApiObject):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class Owned(ApiObject):
    """An object that may have a controller."""

    metadata: Meta = Meta()

    @property
    def controller(self) -> OwnerReference | None:
        for each in self.metadata.owner_references:
            if each.controller:
                return each
        return None

    @property
    def owner(self) -> Key | None:
        """The workload that controls the object, or None if there is none of a known kind."""
        found = self.controller
        if found is None:
            return None
        resource = _OWNERS.get((found.api_version.partition("/")[0], found.kind))
        return None if resource is None else (resource, f"{self.metadata.namespace}/{found.name}")

    @property
    def terminating(self) -> bool:
        return bool(self.metadata.deletion_timestamp)


class Condition(types.Condition):
    last_transition_time: str = ""


class PodSpec(ApiObject):
    node_name: str = ""
    affinity: Affinity | None = None


class PodStatus(ApiObject):
    phase: str = ""
    start_time: str = ""
    conditions: list[Condition] = []


class Pod(Owned):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def active(self) -> bool:
        """Whether the pod counts: it has not ended and is not being deleted."""
        return not self.finished and not self.terminating

    @property
    def ready_since(self) -> float | None:
        for each in self.status.conditions:
            if each.type == "Ready" and each.status == "True":
                return parse_timestamp(each.last_transition_time, 0.0)
        return None

    @property
    def ready(self) -> bool:
        return self.ready_since is not None

    @property
    def last_word(self) -> float:
        """When its status last changed."""
        said = [each.last_transition_time for each in self.status.conditions]
        return max(
            parse_timestamp(text, 0.0) for text in (*said, self.status.start_time, self.metadata.creation_timestamp)
        )

    def available(self, min_ready_seconds: int, now: float) -> bool:
        """Whether the pod has been ready for `min_ready_seconds`."""
        since = self.ready_since
        return since is not None and (not min_ready_seconds or since + min_ready_seconds <= now)


class Node(ApiObject):
    metadata: Meta = Meta()
    spec: types.NodeSpec = types.NodeSpec()
