"""Finds the pod that a user means: by its own name, that of its gang, or that of an object that made it."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.api.keys.values import quoted
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.state.pods import is_finished

PODS = ("pod", "pods", "po")
GANGS = ("gang", "podgroup", "workload")
MAX_COMPARED: Final = 5000  # names that a misspelt one is compared with: 0.2 s
# Labels in which controllers write the name of the object that a user made, where an owner stands between.
_NAMES = (
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "ray.io/cluster",
    "leaderworkerset.sigs.k8s.io/name",
)


class Target(msgspec.Struct, frozen=True):
    """What a user named. `kind` is "" if any will do."""

    kind: str
    namespace: str
    name: str


def parse_target(text: str) -> Target:
    """Parses `NAME`, `KIND/NAME`, `NAMESPACE/NAME` and `NAMESPACE/KIND/NAME`. Raises KubeNexusError. What comes before
    the only slash is a kind if it reads like one (`job`, `pytorchjobs`, `replicaset`), and otherwise a namespace."""
    parts = text.split("/")
    if not all(parts) or len(parts) > 3:
        raise KubeNexusError(f"expected NAME, KIND/NAME or NAMESPACE/NAME, not {quoted(text)}")
    if len(parts) == 3:
        return Target(parts[1].lower(), parts[0], parts[2])
    if len(parts) == 1:
        return Target("", "", parts[0])
    kind = parts[0].lower()
    known = kind in (*PODS, *GANGS) or kind.partition(".")[0].rstrip("s").endswith(("job", "set", "deployment"))
    return Target(kind, "", parts[1]) if known else Target("", parts[0], parts[1])


def parse_pod(text: str) -> Target:
    """Parses `NAME` and `NAMESPACE/NAME` of a pod. Raises KubeNexusError."""
    parts = text.split("/")
    if not all(parts) or len(parts) > 2:
        raise KubeNexusError(f"expected NAME or NAMESPACE/NAME, not {quoted(text)}")
    return Target("pod", parts[0] if len(parts) == 2 else "", parts[-1])


def find_pod(target: Target, namespace: str, pods: Mapping[str, Pod], source: str) -> Pod:
    """Returns the pod as `look_up` does. Raises KubeNexusError, which names similar ones, if there is none."""
    found = look_up(target, namespace, pods)
    if found is None:
        raise KubeNexusError(_missing(target, namespace, pods, source))
    return found


def look_up(target: Target, namespace: str, pods: Mapping[str, Pod]) -> Pod | None:
    """Returns the pod; of several, the first one that waits."""
    if target.kind in ("", *PODS):
        found = pods.get(f"{namespace}/{target.name}")
        if found is not None:
            return found
    members = [] if target.kind in PODS else list(_members(target, namespace, pods.values()))
    return min(members, key=lambda pod: (bool(pod.spec.node_name), is_finished(pod), pod.key), default=None)


def _members(target: Target, namespace: str, pods: Iterable[Pod]) -> Iterable[Pod]:
    own = (pod for pod in pods if pod.metadata.namespace == namespace)
    return (pod for pod in own if _is_of(pod, target))


def _is_of(pod: Pod, target: Target) -> bool:
    kind = target.kind.partition(".")[0]
    owners = ((each.kind.lower(), each.name) for each in pod.metadata.owner_references)
    if any(name == target.name and kind.removesuffix("s") in ("", owner) for owner, name in owners):
        return True
    if kind not in GANGS and any(pod.metadata.labels.get(key) == target.name for key in _NAMES):
        return True
    if kind in ("", *GANGS):
        try:
            gang = declared_gang(pod)
        except Malformed:
            return False
        return gang is not None and gang.display_name == f"{pod.metadata.namespace}/{target.name}"
    # The ReplicaSet of a Deployment is named after it.
    return kind.removesuffix("s") == "deployment" and any(
        each.kind == "ReplicaSet" and each.name.rpartition("-")[0] == target.name
        for each in pod.metadata.owner_references
    )


def made_by(pod: Pod) -> tuple[str, str]:
    """Returns the kind and the name of the object that a user made: the pod itself, its controller, or the object
    behind that. `find_pod` finds the pod by them."""
    for key in _NAMES:
        if pod.metadata.labels.get(key):
            return "", pod.metadata.labels[key]
    for each in pod.metadata.owner_references:
        if each.kind == "ReplicaSet" and "-" in each.name:
            return "deployment", each.name.rpartition("-")[0]
        return each.kind.lower(), each.name
    return "pod", pod.metadata.name


def _missing(target: Target, namespace: str, pods: Mapping[str, Pod], source: str) -> str:
    """Returns the message for a pod that is not there: whether its namespace is, and what it may have been."""
    what = "pod" if target.kind in PODS else target.kind or "pod or job"
    told = f"{what} {target.name} does not exist in namespace {namespace}"
    here = [pod for pod in pods.values() if pod.metadata.namespace == namespace]
    told += f" of {source}" if here else f": {source} has no pod of that namespace"
    near = sorted(key for key in pods if key.endswith(f"/{target.name}"))[:3] or _similar(target, here)
    return told + (f"; did you mean {', '.join(near)}?" if near else "")


def _similar(target: Target, pods: Iterable[Pod]) -> list[str]:
    """Returns pods, or what made them, whose names are nearly the same."""
    names = dict.fromkeys(pod.metadata.name for pod in pods) if target.kind in ("", *PODS) else {}
    if target.kind not in PODS:
        names |= dict.fromkeys(name for pod in pods for name in _names_of(pod))
    return get_close_matches(target.name, list(names)[:MAX_COMPARED], 3, 0.8)


def _names_of(pod: Pod) -> Iterator[str]:
    yield made_by(pod)[1]
    try:
        gang = declared_gang(pod)
    except Malformed:
        return
    if gang is not None:
        yield gang.display_name.rpartition("/")[2]
