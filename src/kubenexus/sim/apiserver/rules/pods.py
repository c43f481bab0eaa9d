"""Pods: what the server sets on creation, and what an update may change."""

from typing import Any

import msgspec

from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.rules.base import ClusterReader, Rule
from kubenexus.sim.apiserver.rules.pod_spec import check_pod_spec
from kubenexus.sim.apiserver.rules.templates import default_pod_spec
from kubenexus.sim.apiserver.status_errors import FieldError, Json, forbidden, forbidden_object, invalid

_PODS = ServedKind("v1", "pods", "Pod")
_CLASSES = "priorityclasses.scheduling.k8s.io"
_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_REMEMBERED = 1024
_RIGHT: set[bytes] = set()  # encoded specs without errors
_CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def default(pod: Json) -> None:
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1


def admit(pod: Json, cluster: ClusterReader) -> None:
    spec = pod["spec"]
    if cluster.admits("Priority"):
        _priority(pod, spec, cluster)
    _runtime(pod, spec)
    _tolerations(spec)


def admit_update(new: Json, old: Json, _: ClusterReader) -> None:
    """Keeps the result of admission where the new state does not set these fields."""
    for key in ("priority", "priorityClassName", "preemptionPolicy"):
        if key in old["spec"]:
            new["spec"].setdefault(key, old["spec"][key])
    _tolerations(new["spec"])


def status(pod: Json) -> Json:
    """Returns the status of a new pod, Pending. A status sent by the client is ignored."""
    first: Json = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        first["conditions"] = [_gated(pod["metadata"]["creationTimestamp"])]
    first["qosClass"] = qos_class(pod["spec"])
    return first


def check(pod: Json) -> list[FieldError]:
    """Returns the errors of the spec. Valid specs are cached by their encoding, because most pods repeat one."""
    spec = pod["spec"]
    text = msgspec.json.encode(spec)
    if text in _RIGHT:
        return []
    flaws = check_pod_spec(spec)
    if not flaws:
        if len(_RIGHT) >= _REMEMBERED:
            _RIGHT.clear()
        _RIGHT.add(text)
    return flaws


def check_update(new: Json, old: Json) -> list[FieldError]:
    if new["spec"] == old["spec"]:
        return []
    flaws = [
        forbidden(f"spec.{group}", "pod updates may not add or remove containers")
        for group in ("containers", "initContainers")
        if len(new["spec"].get(group) or ()) != len(old["spec"].get(group) or ())
    ]
    return flaws or _spec_change(new["spec"], old["spec"])


def _spec_change(new: Json, old: Json) -> list[FieldError]:
    before, after = _frozen(old), _frozen(new)
    flaws = _deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    if not _tolerations_grow(new.get("tolerations") or [], old.get("tolerations") or []):
        why = "existing toleration can not be modified except its tolerationSeconds"
        flaws.append(forbidden("spec.tolerations", why))
    if old.get("schedulingGates"):
        _forget_gates(before, after, new, old)
    return flaws if before == after else [*flaws, forbidden("spec", _CHANGEABLE)]


def _deadline(new: int | None, old: int | None) -> list[FieldError]:
    """Checks that activeDeadlineSeconds is set or decreased, never increased or removed."""
    field = "spec.activeDeadlineSeconds"
    if old is None or (new is not None and new <= old):
        return []
    if new is None:
        return [invalid(field, new, "must not update from a positive integer to nil value")]
    return [invalid(field, new, "must be less than or equal to previous value")]


def _frozen(spec: Json) -> Json:
    """Returns the spec without the fields that may change."""
    frozen = {key: value for key, value in spec.items() if key not in {"activeDeadlineSeconds", "tolerations"}}
    for group in ("containers", "initContainers"):
        frozen[group] = [{**each, "image": "", "imagePullPolicy": ""} for each in spec.get(group) or ()]
    return frozen


def _tolerations_grow(new: list[Json], old: list[Json]) -> bool:
    def bare(each: Json) -> Json:
        return {key: value for key, value in each.items() if key != "tolerationSeconds"}

    return all(bare(each) in [bare(other) for other in new] for each in old)


def _forget_gates(before: Json, after: Json, new: Json, old: Json) -> None:
    """Allows a gated pod to lose gates and to add node selectors."""
    left = [gate for gate in new.get("schedulingGates") or () if gate in old["schedulingGates"]]
    if left == (new.get("schedulingGates") or []):
        before.pop("schedulingGates", None)
        after.pop("schedulingGates", None)
    if (old.get("nodeSelector") or {}).items() <= (new.get("nodeSelector") or {}).items():
        before.pop("nodeSelector", None)
        after.pop("nodeSelector", None)


# ---- admission -------------------------------------------------------------------------------------------------------


def _priority(pod: Json, spec: Json, cluster: ClusterReader) -> None:
    name = spec.get("priorityClassName", "")
    found = _class(pod, name, cluster)
    value = found.get("value", 0)
    if found and not name:
        spec["priorityClassName"] = found["metadata"]["name"]
    if spec.get("priority") is not None and spec["priority"] != value:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name"
        )
        raise forbidden_object(_PODS, pod["metadata"].get("name", ""), why)
    spec["priority"] = value
    policy = found.get("preemptionPolicy", "PreemptLowerPriority")
    if spec.setdefault("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbidden_object(_PODS, pod["metadata"].get("name", ""), why)


def _runtime(pod: Json, spec: Json) -> None:
    """Rejects pods with a runtime class or overhead: there are no runtime classes here."""
    why = ""
    if spec.get("runtimeClassName"):
        why = f'pod rejected: RuntimeClass "{spec["runtimeClassName"]}" not found'
    elif spec.get("overhead"):
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    if why:
        raise forbidden_object(_PODS, pod["metadata"].get("name", ""), why)


def _class(pod: Json, name: str, cluster: ClusterReader) -> Json:
    """Returns the class of that name; without a name the default class, or {} if there is none."""
    if name:
        found = cluster.find(_CLASSES, name)
        if found is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden_object(_PODS, pod["metadata"].get("name", ""), why)
        return found
    defaults = [each for each in cluster.all(_CLASSES, holding=b'"globalDefault":true') if each.get("globalDefault")]
    return min(defaults, key=lambda each: int(each["value"]), default={})


def _tolerations(spec: Json) -> None:
    """Adds the default tolerations: 300 seconds on a node that is not ready or unreachable."""
    tolerations: list[Json] = spec.get("tolerations") or []
    for key in (_NOT_READY, _UNREACHABLE):
        if not any(_tolerates(each, key) for each in tolerations):
            tolerations = [
                *tolerations,
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ]
    spec["tolerations"] = tolerations


def _tolerates(toleration: Json, key: str) -> bool:
    return toleration.get("key", "") in {"", key} and toleration.get("effect", "") in {"", "NoExecute"}


def _gated(now: str) -> Json:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastTransitionTime": now,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def qos_class(spec: Json) -> str:
    """Returns the quality of service class, by CPU and memory of all containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked = [each.get("resources") or {} for each in containers]
    if not any(_counted(each.get(side)) for each in asked for side in ("requests", "limits")):
        return "BestEffort"
    return "Guaranteed" if all(map(_guaranteed, asked)) else "Burstable"


def _counted(amounts: Any) -> dict[str, Any]:
    return {key: value for key, value in (amounts or {}).items() if key in {"cpu", "memory"} and value != "0"}


def _guaranteed(resources: Json) -> bool:
    limits = _counted(resources.get("limits"))
    return len(limits) == 2 and _counted(resources.get("requests")) == limits


POD = Rule(
    default=default,
    admit=admit,
    admit_update=admit_update,
    check=check,
    check_update=check_update,
    status=status,
    returns_deleted=True,
    generation=True,
    graceful=True,
)
