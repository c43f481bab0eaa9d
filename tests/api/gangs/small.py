"""Groups in few words, for tests of the resolver and of what stands on it."""

from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import COSCHEDULING, POD_GROUP, VOLCANO, WORKLOAD
from kubenexus.api.gangs.resolver import Gang, claim_of, settle
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import PodGroup, Workload
from kubenexus.state.groups import Groups
from kubenexus.testing.builders import a_pod

NAME = "pod-group.scheduling.kubenexus.io/name"
LEAST = "pod-group.scheduling.kubenexus.io/min-available"


def a_member(name: str, gang: str = "llama", least: int | str = 2, **fields: Any) -> Pod:
    labels = {NAME: gang, LEAST: str(least)} | fields.pop("labels", {})
    return a_pod(name, labels=labels, **fields)


def gang_of(pod: Pod, groups: Groups) -> Gang | None:
    """As the queue asks (`queue.assembly`); None for a pod that goes by itself."""
    claim = claim_of(pod)
    gang = None if claim is None else settle(claim, groups)
    return None if gang is None or gang.loose else gang


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


def known(**by_kind: Any) -> Groups:
    """`known(pod_group=..., coscheduling=..., volcano=..., workload=...)`."""
    kinds = {"pod_group": POD_GROUP, "coscheduling": COSCHEDULING, "volcano": VOLCANO, "workload": WORKLOAD}
    groups = Groups()
    for word, thing in by_kind.items():
        groups.seen(kinds[word], thing)
    return groups
