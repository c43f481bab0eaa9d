"""The workloads, as kube-scheduler's own benchmark (scheduler_perf) has them: each asks something else of a scheduler.

Nodes have 4 cpu, 32 Gi, room for 110 pods and one of three zones; all pods ask for 100m and 500 Mi. Gangs are PodGroups
of `scheduling.k8s.io`; where they are measured, a hundred nodes share a rack. Claims are made from a template by
kube-controller-manager, for one of ten devices of a node. For preemption, four pods of 900m run on
each node, and each pod of the run asks for 3 cpu: three of the four have to go.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

Data = dict[str, Any]

SCHEDULER: Final = "measured"
ZONE: Final = "topology.kubernetes.io/zone"
RACK: Final = "topology.kubernetes.io/rack"
RACK_OF: Final = 100
WORKER: Final = "worker-"
VICTIM: Final = "victim-"
HOST: Final = "kubernetes.io/hostname"
OS: Final = "kubernetes.io/os"
ZONES: Final = ("zone1", "zone2", "zone3")
URGENT: Final = "urgent"
DRIVER: Final = "test-driver.cdi.k8s.io"  # also the name of its class and of the template
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Gangs(NamedTuple):
    """So many members each, and all of them are needed. `rack`: within one rack."""

    size: int
    rack: bool = False


class Case(NamedTuple):
    """`drain` and `burst` are how many pods of it are measured. `churn`: the cluster changes meanwhile. `gangs`: they
    come in gangs, for which a control plane needs its gates open. `victims`: so many pods of lower priority run on each
    node before. `devices`: so many are in a slice of each node, and each pod has a claim for one, from a template."""

    name: str
    drain: int
    burst: int
    wish: Callable[[], tuple[str, Data]]  # a colour, and what goes into the spec
    churn: bool = False
    gangs: Gangs | None = None
    victims: int = 0
    devices: int = 0

    def whole(self, pods: int) -> int:
        """So many pods, and as many more as make the last gang whole."""
        return pods if self.gangs is None else -(-pods // self.gangs.size) * self.gangs.size


def _nothing() -> tuple[str, Data]:
    return "", {}


def _node_affinity() -> tuple[str, Data]:
    where = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(ZONES[:2])}]}
    return "", {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [where]}}}}


def _required_affinity() -> tuple[str, Data]:
    return "blue", {"affinity": {"podAffinity": {_REQUIRED: [_term("blue", ZONE)]}}}


def _anti_affinity() -> tuple[str, Data]:
    return "green", {"affinity": {"podAntiAffinity": {_REQUIRED: [_term("green", HOST)]}}}


def _preferred_affinity() -> tuple[str, Data]:
    return "red", {"affinity": {"podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _term("red", HOST)}]}}}


def _spread() -> tuple[str, Data]:
    even = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return "blue", {"topologySpreadConstraints": [even | {"labelSelector": {"matchLabels": {"color": "blue"}}}]}


def _preempting() -> tuple[str, Data]:
    return "", _spec("3", "500Mi") | {"priorityClassName": URGENT}


def _claiming() -> tuple[str, Data]:
    spec = _spec("100m", "500Mi")
    spec["containers"][0]["resources"]["claims"] = [{"name": "device"}]
    return "", spec | {"resourceClaims": [{"name": "device", "resourceClaimTemplateName": DRIVER}]}


def _term(color: str, key: str) -> Data:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key}


# The first has the size for which memory is promised. The others are as large as kube-scheduler is quick at them, and
# large enough that starting is not most of a run; scheduler_perf has 2,000 to 5,000 of those that look beyond a node.
CASES: Final = {
    case.name: case
    for case in (
        Case("basic", 10_000, 5_000, _nothing),
        Case("node-affinity", 4_000, 2_000, _node_affinity),
        Case("required-affinity", 2_000, 1_000, _required_affinity),
        Case("anti-affinity", 2_000, 1_000, _anti_affinity),
        Case("spread", 2_000, 1_000, _spread),
        Case("preferred-affinity", 4_000, 1_000, _preferred_affinity),
        Case("churn", 4_000, 2_000, _nothing, churn=True),
        Case("preemption", 1_000, 1_000, _preempting, victims=4),
        Case("claims", 2_000, 1_000, _claiming, devices=10),
        Case("gangs", 4_000, 800, _nothing, gangs=Gangs(8)),
        Case("gangs-large", 3_000, 1_000, _nothing, gangs=Gangs(1_000)),
        Case("gangs-rack", 1_200, 400, _nothing, gangs=Gangs(4, rack=True)),
        Case("gangs-preemption", 800, 400, _preempting, gangs=Gangs(8), victims=4),
    )
}


def node(number: int, *, racks: bool = False) -> Data:
    name, amounts = f"{WORKER}{number:05d}", {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels = {HOST: name, ZONE: ZONES[number % len(ZONES)]} | ({RACK: rack_of(number), OS: "linux"} if racks else {})
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(case: Case, name: str) -> Data:
    color, wish = case.wish()
    meta: Data = {"name": name, "labels": {"color": color} if color else {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _spec("100m", "500Mi") | wish}


def device_slice(number: int, devices: int) -> Data:
    """The devices of a node, as scheduler_perf's driver publishes them."""
    name = f"{WORKER}{number:05d}"
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    named = [{"name": f"instance-{i}", "attributes": {"model": {"string": "A100"}}} for i in range(devices)]
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": named}
    return _resource("ResourceSlice", name, spec)


def device_class() -> Data:
    return _resource("DeviceClass", DRIVER, {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]})


def claim_template() -> Data:
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1}
    return _resource(
        "ResourceClaimTemplate", DRIVER, {"spec": {"devices": {"requests": [{"name": "req-0", "exactly": exactly}]}}}
    )


def _resource(kind: str, name: str, spec: Data) -> Data:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def victim(number: int) -> Data:
    """The pod with this number: nodes are filled one after the other, round by round. It ends at once."""
    spec = _spec("900m", "500Mi") | {"terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{VICTIM}{number:05d}"}, "spec": spec}


def members(case: Case, prefix: str, count: int) -> list[Data]:
    """All pods of a run. Gangs come interleaved: the first member of each, then the second of each."""
    pods = [pod(case, f"{prefix}{number:05d}") for number in range(count)]
    if case.gangs is not None:
        for number, each in enumerate(pods):
            each["spec"]["schedulingGroup"] = {"podGroupName": _gang(number % (count // case.gangs.size))}
    return pods


def pod_groups(case: Case, count: int) -> list[Data]:
    """Those that so many pods belong to."""
    if case.gangs is None:
        return []
    spec: Data = {"schedulingPolicy": {"gang": {"minCount": case.gangs.size}}}
    if case.gangs.rack:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "spec": spec}
    return [kind | {"metadata": {"name": _gang(number)}} for number in range(count // case.gangs.size)]


def scattered(pods: Iterable[Data]) -> int:
    """Of how many gangs the members are in several racks; of bound pods, as the server lists them."""
    racks: dict[str, set[str]] = defaultdict(set)
    for spec in (each["spec"] for each in pods if "schedulingGroup" in each["spec"]):
        racks[spec["schedulingGroup"]["podGroupName"]].add(rack_of(int(spec["nodeName"].removeprefix(WORKER))))
    return sum(len(each) > 1 for each in racks.values())


def _gang(number: int) -> str:
    return f"gang-{number:04d}"


def rack_of(node: int) -> str:
    return f"rack-{node // RACK_OF}"


# What a churning cluster has one moment and has not the next: a node without room, a pod for which there is none, and a
# service of nobody.


def churn_node() -> Data:
    status = {"capacity": {"pods": "0"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-churn"}, "status": status}


def churn_pod() -> Data:
    spec = _spec("9", "500Mi") | {"priorityClassName": URGENT}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-churn"}, "spec": spec}


def churn_service() -> Data:
    spec = {"selector": {"app": "foo"}, "ports": [{"protocol": "TCP", "port": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "service-churn"}, "spec": spec}


def _spec(cpu: str, memory: str) -> Data:
    amounts = {"cpu": cpu, "memory": memory}
    container: Data = {"name": "pause", "image": "registry.k8s.io/pause:3.10.2", "ports": [{"containerPort": 80}]}
    container["resources"] = {"requests": amounts, "limits": amounts}
    return {"schedulerName": SCHEDULER, "containers": [container]}
