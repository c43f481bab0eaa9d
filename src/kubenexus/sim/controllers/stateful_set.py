"""The StatefulSet controller: pods with stable names, created in order and removed from the end.

OrderedReady creates a pod when all before it are ready, and deletes one at a time when the others are available.
Parallel does all at once. Claims of `volumeClaimTemplates` are created and kept. Revisions are hashes: pods created
during an update use the new template.
"""

import re
from collections.abc import Iterator, Sequence

from kubenexus.client import kinds, verbs
from kubenexus.client.calls import Call
from kubenexus.sim.controllers import owner_refs
from kubenexus.sim.controllers.object_cache import ControllerCache
from kubenexus.sim.controllers.reconcile_result import MAX_PODS_PER_STEP, ReconcileResult, without_zero_fields
from kubenexus.sim.controllers.replica_set import waiting
from kubenexus.sim.controllers.revisions import REVISION_HASH, hash_of
from kubenexus.sim.controllers.types import STATEFUL_SETS, Item, Pod

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
_ORDINAL = re.compile(r"-(0|[1-9][0-9]*)$")


def reconcile(item: Item, pods: Sequence[Pod], _: ControllerCache, now: float) -> ReconcileResult:
    by_ordinal = {number: pod for pod in pods if (number := ordinal(item, pod)) is not None}
    revision = f"{item['metadata']['name']}-{hash_of(item['spec']['template'])}"
    calls: list[Call] = []
    if "deletionTimestamp" not in item["metadata"]:
        calls = list(_next(item, by_ordinal, revision, now))[:MAX_PODS_PER_STEP]
    status = _status(item, [pod for pod in by_ordinal.values() if not pod.finished], revision, now)
    return ReconcileResult(status, calls, waiting(list(by_ordinal.values()), _wait(item), now))


def ordinal(item: Item, pod: Pod) -> int | None:
    """Returns the pod's ordinal, or None if its name is not one of the set."""
    found = _ORDINAL.search(pod.metadata.name)
    if found is None or pod.metadata.name[: found.start()] != item["metadata"]["name"]:
        return None
    return int(found[1])


def _wait(item: Item) -> int:
    seconds: int = item["spec"].get("minReadySeconds", 0)
    return seconds


def _numbers(item: Item) -> range:
    start = item["spec"].get("ordinals", {}).get("start", 0)
    return range(start, start + item["spec"]["replicas"])


def _next(item: Item, pods: dict[int, Pod], revision: str, now: float) -> Iterator[Call]:
    """Yields the calls that are allowed now; if ordered, none after the first pod to wait for."""
    ordered = item["spec"].get("podManagementPolicy") != "Parallel"
    wanted = _numbers(item)
    for number in wanted:
        pod = pods.get(number)
        if pod is None:
            yield from _make(item, number, revision)
        elif pod.finished and not pod.terminating:
            yield owner_refs.delete_child(pod)
        if ordered and not _well(item, pod, now):
            return
    surplus = sorted((number for number in pods if number not in wanted), reverse=True)
    for number in surplus:
        if not pods[number].terminating:
            yield owner_refs.delete_child(pods[number])
        if ordered:
            return
    if not surplus:
        yield from _replaced(item, pods, revision, now)


def _well(item: Item, pod: Pod | None, now: float) -> bool:
    return pod is not None and pod.active and pod.available(_wait(item), now)


def _replaced(item: Item, pods: dict[int, Pod], revision: str, now: float) -> Iterator[Call]:
    """Rolling update: from the last ordinal to the partition, one at a time, each when those after it are available."""
    strategy = item["spec"].get("updateStrategy", {})
    if strategy.get("type") != "RollingUpdate":
        return
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    for number in reversed(_numbers(item)):
        pod = pods.get(number)
        if number < partition:
            return
        if pod is not None and pod.active and pod.metadata.labels.get(REVISION_HASH) != revision:
            yield owner_refs.delete_child(pod)
            return
        if not _well(item, pod, now):
            return


def _make(item: Item, number: int, revision: str) -> Iterator[Call]:
    name = f"{item['metadata']['name']}-{number}"
    labels = {POD_NAME: name, POD_INDEX: str(number), REVISION_HASH: revision}
    pod = owner_refs.pod_of(STATEFUL_SETS, item, name=name, labels=labels, generateName=f"{item['metadata']['name']}-")
    pod["spec"] |= {"hostname": name, "subdomain": item["spec"].get("serviceName", "")}
    claims = item["spec"].get("volumeClaimTemplates", ())
    volumes = {each["name"]: each for each in pod["spec"].get("volumes", ())}
    for claim in claims:
        own = claim["metadata"]["name"]
        volumes[own] = {"name": own, "persistentVolumeClaim": {"claimName": f"{own}-{name}"}}
        yield _claim(item, claim, f"{own}-{name}")
    if claims:
        pod["spec"]["volumes"] = list(volumes.values())
    yield owner_refs.create_child(item, pod)


def _claim(item: Item, template: Item, name: str) -> Call:
    """Creates a claim. An existing one is kept: the manager treats AlreadyExists as success."""
    labels = {**template["metadata"].get("labels", {}), **item["spec"]["selector"].get("matchLabels", {})}
    meta = {"name": name, "labels": labels, "annotations": template["metadata"].get("annotations", {})}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"]}
    return verbs.create(kinds.PERSISTENT_VOLUME_CLAIMS, body, item["metadata"]["namespace"])


def _status(item: Item, pods: Sequence[Pod], revision: str, now: float) -> Item:
    old = item.get("status", {})
    active = [pod for pod in pods if pod.active]
    updated = sum(pod.metadata.labels.get(REVISION_HASH) == revision for pod in active)
    current = old.get("currentRevision") or revision
    if updated == len(pods) == item["spec"]["replicas"] and all(pod.ready for pod in active):
        current = revision
    status = {
        "replicas": len(pods),
        "readyReplicas": sum(pod.ready for pod in active),
        "availableReplicas": sum(pod.available(_wait(item), now) for pod in active),
        "currentReplicas": sum(pod.metadata.labels.get(REVISION_HASH) == current for pod in active),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": revision,
        "collisionCount": 0,
        "observedGeneration": item["metadata"]["generation"],
    }
    return without_zero_fields(status, "replicas", "availableReplicas", "collisionCount")
