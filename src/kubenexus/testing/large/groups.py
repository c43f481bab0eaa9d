"""Many objects at once, each of ordinary size. Each way to form such a group is a dimension."""

from collections.abc import Callable
from typing import Final, NamedTuple

from kubenexus.api.job_dependencies import MAX_NAMES
from kubenexus.api.keys import KEYS, gang, gpu, tenant, workload
from kubenexus.client import kinds
from kubenexus.plan.gang.gang_limits import MAX_MEMBERS
from kubenexus.testing.large import gang_groups
from kubenexus.testing.large.device_groups import gang_that_competes, machines, one_pool_for_all_nodes, republished
from kubenexus.testing.large.large_cluster import Item
from kubenexus.testing.large.objects import node
from kubenexus.testing.large.pods import ANNOTATION_BYTES, GPU, HOSTNAME, ZONE, Json, plain

_QUEUE: Final = "queue"
_PODS_PER_NODE: Final = 100
_JOBS: Final = 1_000
_OF_SINGLE_PODS: Final = sorted(KEYS.difference(*(entry.keys for entry in gang.SECTION.entries)))


class LargeGroup(NamedTuple):
    """A function that creates so many objects, one that changes some and returns those, and the most that are tried."""

    make: Callable[[int], list[Item]]
    change: Callable[[list[Item]], list[Item]]
    most: int


def _member(i: int, number: int) -> Json:
    pod = plain(f"member-{i}")
    pod["metadata"]["labels"] |= {gang.NAME.key: "gang", gang.MIN_AVAILABLE.key: str(number)}
    return pod


def _unlike_members(number: int) -> list[Item]:
    """Members with labels and amounts of their own; every fourth has a GPU."""
    pods = [_member(i, number) for i in range(number)]
    for i, pod in enumerate(pods):
        pod["metadata"]["labels"]["app"] = f"app-{i}"
        pod["metadata"]["annotations"] = {tenant.SPREAD_ZONES.key: "true"}
        _ask(pod, f"{100 + i}m", gpus=i % 4 == 0)
    return _items(pods)


def _members_that_limit_each_other(number: int) -> list[Item]:
    """Members that keep apart on nodes and are spread over zones, so that each is placed after the others."""
    pods = [_member(i, number) for i in range(number)]
    alike = {"matchLabels": {gang.NAME.key: "gang"}}
    apart = [{"topologyKey": HOSTNAME, "labelSelector": alike}]
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": alike}
    for pod in pods:
        pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}
        pod["spec"]["topologySpreadConstraints"] = [spread]
    return _items(pods)


def _members_with_long_values(number: int) -> list[Item]:
    pods = [_member(i, number) for i in range(number)]
    for i, pod in enumerate(pods):
        pod["metadata"]["annotations"] = {tenant.POD_TIER.key: f"{i}" + "x" * (ANNOTATION_BYTES - 100)}
    return _items(pods)


def _own_controllers(number: int) -> list[Item]:
    """Pods with a controller each, as of jobs with one pod: nine of ten run, the others wait."""
    pods = [plain(f"owned-{i}", f"node-{i}" if i % 10 else "") for i in range(number)]
    for i, pod in enumerate(pods):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"r{i}", "uid": f"u{i}", "controller": True}
        pod["metadata"] |= {"ownerReferences": [owner], "annotations": {tenant.SPREAD_ZONES.key: "true"}}
    return _items(pods)


def _pods_of_a_queue(number: int) -> list[Item]:
    """Pods of one LocalQueue: every other one runs with a GPU, the others wait for a node that does not exist."""
    pods = [plain(f"queued-{i}", f"node-{i * 4}" if i % 2 else "") for i in range(number)]
    for i, pod in enumerate(pods):
        pod["metadata"]["labels"][tenant.QUEUE.key] = _QUEUE
        pod["metadata"]["annotations"] = {tenant.POD_TIER.key: tenant.TIERS[i % 3]}
        pod["spec"]["nodeSelector"] = {"example.com/no-such": "label"}
        _ask(pod, f"{100 + i // 2 % 50}m", gpus=bool(i % 2))
    meta = {"name": _QUEUE, "namespace": "default", "uid": _QUEUE, "labels": {tenant.TIER.key: "bronze"}}
    queue = {"metadata": meta, "spec": {"clusterQueue": "cluster-queue"}}
    return [Item(kinds.LOCAL_QUEUES, queue), *_items(pods)]


def _pods_on_gpu_nodes(number: int) -> list[Item]:
    """GPU nodes, and on each a hundred pods, of which each claims a tier of its own."""
    nodes = [node(0, f"priced-{i}") for i in range(-(-number // _PODS_PER_NODE))]
    pods = [plain(f"paying-{i}", f"priced-{i // _PODS_PER_NODE}") for i in range(number)]
    for i, pod in enumerate(pods):
        pod["metadata"]["annotations"] = {tenant.POD_TIER.key: f"tier-{i}"}
        _ask(pod, "10m", gpus=True)
    return [*(Item(kinds.NODES, each) for each in nodes), *_items(pods)]


def _pods_after_others(number: int) -> list[Item]:
    """Pods that come after sixteen of the first thousand pods each, so that no search for a cycle is short."""
    pods = [plain(f"after-{i}") for i in range(number)]
    for i, pod in enumerate(pods):
        names = ",".join(f"after-{(i * MAX_NAMES + j + 1) % _JOBS}" for j in range(MAX_NAMES))
        pod["metadata"]["annotations"] = {workload.AFTER.key: names}
    return _items(pods)


def _unclear_pods(number: int) -> list[Item]:
    """GPU pods with values that cannot be read, each with texts of its own, for all keys but those of gangs."""
    pods = [plain(f"unclear-{i}") for i in range(number)]
    for i, pod in enumerate(pods):
        pod["metadata"]["labels"] |= dict.fromkeys(_OF_SINGLE_PODS, f"label-{i}")
        pod["metadata"]["annotations"] = dict.fromkeys(_OF_SINGLE_PODS, f"annotation-{i}")
        _ask(pod, "100m", gpus=True)
    return _items(pods)


def _ask(pod: Json, cpu: str, gpus: bool) -> None:
    """Sets the requests of a pod: CPU, and perhaps a GPU."""
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"]["cpu"] = cpu
    if gpus:
        resources["requests"][GPU] = "1"
        resources["limits"] = {GPU: "1"}


def _items(pods: list[Json]) -> list[Item]:
    return [Item(kinds.PODS, pod) for pod in pods]


def _relabel_all(items: list[Item]) -> list[Item]:
    for item in items:
        item.thing["metadata"]["labels"]["changed"] = "yes"
    return items


def _relabel_one(items: list[Item]) -> list[Item]:
    return _relabel_all(items[:1])


def _raise_tier(items: list[Item]) -> list[Item]:
    items[0].thing["metadata"]["labels"][tenant.TIER.key] = "gold"
    return items[:1]


def _price(items: list[Item]) -> list[Item]:
    nodes = [item for item in items if item.resource is kinds.NODES]
    for item in nodes:
        item.thing["metadata"]["labels"][gpu.COST_HOUR.key] = "3"
    return nodes


GROUPS: Final[dict[str, LargeGroup]] = {
    "members of a gang that fits": LargeGroup(gang_groups.members_that_fit, gang_groups.deleted, MAX_MEMBERS),
    "members of a gang that does not fit": LargeGroup(gang_groups.members_that_do_not_fit, _relabel_one, MAX_MEMBERS),
    "members of a gang that is evicted": LargeGroup(gang_groups.members_that_are_evicted, _relabel_one, MAX_MEMBERS),
    "members of a gang whose PodGroup comes last": LargeGroup(
        gang_groups.members_before_their_group, _relabel_one, MAX_MEMBERS
    ),
    "members of a gang that all differ": LargeGroup(_unlike_members, _relabel_one, 1_500),
    "members of a gang that limit each other": LargeGroup(_members_that_limit_each_other, _relabel_one, 500),
    "members of a gang with long values": LargeGroup(_members_with_long_values, _relabel_one, 60),
    "pods with a controller each": LargeGroup(_own_controllers, _relabel_all, 5_000),
    "pods of a queue whose tier changes": LargeGroup(_pods_of_a_queue, _raise_tier, 5_000),
    "pods that come after other jobs": LargeGroup(_pods_after_others, _relabel_all, 5_000),
    "pods whose values cannot be read": LargeGroup(_unclear_pods, _relabel_all, 1_500),
    "pods on GPU nodes that get a price": LargeGroup(_pods_on_gpu_nodes, _price, 5_000),
    "nodes with GPUs that claims tell apart": LargeGroup(machines, republished, 5_000),
    "devices of a pool that all nodes see": LargeGroup(one_pool_for_all_nodes, republished, 12_000),
    "members of a gang whose claims compete": LargeGroup(gang_that_competes, republished, 500),
}
