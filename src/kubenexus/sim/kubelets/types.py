"""The fields of nodes and pods that agents read."""

from kubenexus.api.core import ResourceList, ResourceRequirements, Taint
from kubenexus.api.meta import ApiObject, ObjectMeta


class Condition(ApiObject):
    type: str = ""
    status: str = ""


class NodeAddress(ApiObject):
    type: str = ""
    address: str = ""


class NodeSpec(ApiObject):
    taints: list[Taint] = []


class NodeStatus(ApiObject):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: list[Condition] = []
    addresses: list[NodeAddress] = []


class Node(ApiObject):
    """A node as its agent sees it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    @property
    def address(self) -> str:
        return next((each.address for each in self.status.addresses if each.type == "InternalIP"), "")


class Container(ApiObject):
    name: str = ""
    image: str = ""
    restart_policy: str = ""
    resources: ResourceRequirements = ResourceRequirements()


class PodSpec(ApiObject):
    node_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}


class PodStatus(ApiObject):
    phase: str = ""
    start_time: str = ""


class Pod(ApiObject):
    """A pod as the agent of its node sees it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def __str__(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"
