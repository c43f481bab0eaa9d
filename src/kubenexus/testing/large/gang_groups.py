"""Gangs of thousands of ordinary members: one that fits, one that does not, one that loses its barrier, one whose
PodGroup comes last."""

from typing import Final

from kubenexus.api.keys import gang
from kubenexus.client import kinds
from kubenexus.testing.large.large_cluster import Item
from kubenexus.testing.large.pods import GPU, Json, plain

_GROUP: Final = "late"
_NODES: Final = 5_000


def members_that_fit(number: int) -> list[Item]:
    """A gang of so many small members, all alike."""
    return _items(_members(number, number))


def members_that_do_not_fit(number: int) -> list[Item]:
    """A gang of whose members some cannot be placed: there are GPUs for all, on nodes of other members."""
    members = _members(number, number)
    for pod in members:
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "60", GPU: "1"}, "limits": {GPU: "1"}}
    return _items(members)


def members_that_are_evicted(number: int) -> list[Item]:
    """A gang that lacks one member, of which all others run: they are evicted when its deadline ends."""
    members = _members(number, number + 1)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job", "controller": True}
    for i, pod in enumerate(members):
        pod["spec"]["nodeName"], pod["status"]["phase"] = f"node-{i % _NODES}", "Running"
        pod["metadata"]["ownerReferences"] = [owner]
    return _items(members)


def members_before_their_group(number: int) -> list[Item]:
    """Members that name a PodGroup, and then the PodGroup."""
    members = [plain(f"early-{i}") for i in range(number)]
    for pod in members:
        pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = _GROUP
    meta = {"name": _GROUP, "namespace": "default", "uid": _GROUP}
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": meta}
    return [*_items(members), Item(kinds.COSCHEDULING_POD_GROUPS, {**group, "spec": {"minMember": number}})]


def deleted(items: list[Item]) -> list[Item]:
    """Returns the pods of the items with the mark of a graceful deletion."""
    pods = [item for item in items if item.resource is kinds.PODS]
    for item in pods:
        item.thing["metadata"]["deletionTimestamp"] = "2026-11-18T00:00:00Z"
    return pods


def _members(number: int, least: int) -> list[Json]:
    pods = [plain(f"member-{i}") for i in range(number)]
    for pod in pods:
        pod["metadata"]["labels"] |= {gang.NAME.key: "gang", gang.MIN_AVAILABLE.key: str(least)}
    return pods


def _items(pods: list[Json]) -> list[Item]:
    return [Item(kinds.PODS, pod) for pod in pods]
