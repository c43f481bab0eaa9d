"""Groups in few words, for tests of the resolver and of what stands on it."""

from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import COSCHEDULING, POD_GROUP, VOLCANO, WORKLOAD
from kubenexus.api.gangs.resolver import Gang, declared_gang, resolve_gang
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import PodGroup, Workload
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.testing.builders import a_pod

NAME = "pod-group.scheduling.kubenexus.io/name"
LEAST = "pod-group.scheduling.kubenexus.io/min-available"


def a_member(name: str, gang: str = "llama", least: int | str = 2, **fields: Any) -> Pod:
    labels = {NAME: gang, LEAST: str(least)} | fields.pop("labels", {})
    return a_pod(name, labels=labels, **fields)


def gang_of(pod: Pod, groups: PodGroupStore) -> Gang | None:
    """As the queue asks (`queue.gangs.job_assembler`); None for a pod that goes by itself."""
    claim = declared_gang(pod)
    gang = None if claim is None else resolve_gang(claim, groups)
    return None if gang is None or gang.is_trivial else gang


def pod_group(name: str = "llama", least: int = 0, level: str = "", namespace: str = "default") -> PodGroup:
    """Kubernetes' own; without a number its policy is basic."""
    policy: dict[str, Any] = {"gang": {"minCount": least}} if least else {"basic": {}}
    spec: dict[str, Any] = {"schedulingPolicy": policy}
    if level:
        spec["schedulingConstraints"] = {"topology": [{"key": level}]}
    return _made(PodGroup, name, namespace, spec)


def member_group(name: str = "llama", least: int | None = 4, namespace: str = "default") -> PodGroup:
    """That of scheduler-plugins, or of Volcano."""
    return _made(PodGroup, name, namespace, {} if least is None else {"minMember": least})


def workload(name: str = "llama", field: str = "podGroups", namespace: str = "default", **parts: int) -> Workload:
    policy = "policy" if field == "podGroups" else "schedulingPolicy"
    groups = [{"name": part, policy: {"gang": {"minCount": least}}} for part, least in parts.items()]
    return _made(Workload, name, namespace, {field: groups})


def _made(kind: Any, name: str, namespace: str, spec: dict[str, Any]) -> Any:
    made = msgspec.convert({"spec": spec}, kind)
    return msgspec.structs.replace(made, metadata=ObjectMeta(name=name, namespace=namespace))


def known(**by_kind: Any) -> PodGroupStore:
    """`known(pod_group=..., coscheduling=..., volcano=..., workload=...)`."""
    kinds = {"pod_group": POD_GROUP, "coscheduling": COSCHEDULING, "volcano": VOLCANO, "workload": WORKLOAD}
    groups = PodGroupStore()
    for word, thing in by_kind.items():
        groups.seen(kinds[word], thing)
    return groups
