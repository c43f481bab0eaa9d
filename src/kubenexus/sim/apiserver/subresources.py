"""The subresources binding, eviction and scale."""

from typing import Any

import msgspec

from kubenexus.api.selectors import LabelSelector, compile_selector
from kubenexus.sim.apiserver import deleting, verbs
from kubenexus.sim.apiserver.deleting import DeleteOptions
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.object_store import ObjectStore, decode
from kubenexus.sim.apiserver.status_errors import (
    Json,
    StatusError,
    bad_request,
    conflict,
    internal,
    invalid,
    invalid_object,
    modified,
    not_found,
    required,
    unsupported,
)
from kubenexus.sim.apiserver.verbs import Target, WriteOptions, wrong_uid

CREATED: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_BUDGETS = "poddisruptionbudgets.policy"
_BINDING = "pods/binding"


# ---- binding ---------------------------------------------------------------------------------------------------------


def bind(core: ObjectStore, target: Target, binding: Json, wish: WriteOptions) -> Json:
    """Sets the node of a pod, once. Raises StatusError."""
    head, node = binding.get("metadata") or {}, binding.get("target") or {}
    if head.get("name") != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    if node.get("kind", "") not in {"", "Node"}:
        raise internal(str(unsupported("target.kind", node["kind"], ("Node", "<empty>"))))
    if not node.get("name"):
        raise internal(str(required("target.name")))
    pod = _pod(core, target)
    _may_bind(target, pod, head)
    pod["spec"]["nodeName"] = node["name"]
    for key in ("labels", "annotations"):
        if head.get(key):
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **head[key]}
    _set_condition(pod, {"type": "PodScheduled", "status": "True", "lastTransitionTime": core.now()})
    if not wish.dry_run:
        core.write(target.kind, target.key, pod)
    return CREATED


def _pod(core: ObjectStore, target: Target) -> Json:
    data = core.store.get(target.kind.store, target.key)
    if data is None:
        raise not_found(target.kind, target.name)
    return decode(data)


def _may_bind(target: Target, pod: Json, head: Json) -> None:
    name = target.name
    if head.get("uid") and head["uid"] != pod["metadata"]["uid"]:
        raise wrong_uid(target, head["uid"], pod["metadata"]["uid"])
    if head.get("resourceVersion") and head["resourceVersion"] != pod["metadata"]["resourceVersion"]:
        raise modified(target.kind, name)
    why = ""
    if "deletionTimestamp" in pod["metadata"]:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    elif pod["spec"].get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict(target.kind, name, why, _BINDING)


def _set_condition(pod: Json, wanted: Json) -> None:
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    for index, each in enumerate(conditions):
        if each["type"] == wanted["type"]:
            if each["status"] == wanted["status"]:
                wanted = {**wanted, "lastTransitionTime": each.get("lastTransitionTime")}
            conditions[index] = wanted
            return
    conditions.append(wanted)


# ---- eviction --------------------------------------------------------------------------------------------------------


def evict(core: ObjectStore, target: Target, eviction: Json, wish: WriteOptions) -> Json:
    """Deletes a pod if its disruption budgets allow it. Raises StatusError (429 if they do not)."""
    if (eviction.get("metadata") or {}).get("name") != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = msgspec.convert(eviction.get("deleteOptions") or {}, DeleteOptions)
    pod = _pod(core, target)
    if wish.dry_run:
        options.dryRun = ["All"]
    if not _leaves_anyway(pod):
        _ask_budgets(core, target, pod, dry_run=bool(options.dryRun))
    if not options.dryRun and not _is_over(pod):
        message = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
        _set_condition(pod, {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": core.now(), **message})
        if pod != _pod(core, target):
            core.write(target.kind, target.key, pod)
    deleting.delete(core, target, options)
    return CREATED


def _is_over(pod: Json) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def _leaves_anyway(pod: Json) -> bool:
    """Whether no budget applies: the pod has ended, has not started, or is being deleted."""
    pending = pod["status"].get("phase") == "Pending"
    return pending or _is_over(pod) or "deletionTimestamp" in pod["metadata"]


def _ask_budgets(core: ObjectStore, target: Target, pod: Json, *, dry_run: bool) -> None:
    budgets = [each for each in core.all(_BUDGETS, target.namespace) if _covers(each, pod)]
    if len(budgets) > 1:
        why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise StatusError(500, "InternalError", why)
    for budget in budgets:
        _ask(core, target, pod, budget, dry_run=dry_run)


def _covers(budget: Json, pod: Json) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    wanted = compile_selector(msgspec.convert(selector, LabelSelector))
    return wanted.matches(pod["metadata"].get("labels") or {})


def _ask(core: ObjectStore, target: Target, pod: Json, budget: Json, *, dry_run: bool) -> None:
    status, name = budget.get("status") or {}, budget["metadata"]["name"]
    if not _ready(pod) and _unhealthy_may_go(budget):
        return
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, name, retry=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        why = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        raise _too_many(why, name, retry=0)
    status["disruptionsAllowed"] -= 1
    status.setdefault("disruptedPods", {})[target.name] = core.now()
    if not status["disruptionsAllowed"]:
        _no_more(core, budget)
    if not dry_run:
        core.write(_BUDGET, f"{target.namespace}/{name}", budget)


def _no_more(core: ObjectStore, budget: Json) -> None:
    condition = {"type": "DisruptionAllowed", "status": "False", "lastTransitionTime": core.now()}
    condition |= {"reason": "InsufficientPods", "observedGeneration": budget["status"]["observedGeneration"]}
    _set_condition(budget, {**condition, "message": ""})


def _ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _unhealthy_may_go(budget: Json) -> bool:
    """Whether a pod that is not ready may be evicted: the policy allows it, or the budget is met without it."""
    status = budget.get("status") or {}
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


_BUDGET = ServedKind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")


def _too_many(why: str, budget: str, retry: int) -> StatusError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry:
        details["retryAfterSeconds"] = retry
    return StatusError(429, "TooManyRequests", message, details)


# ---- scale -----------------------------------------------------------------------------------------------------------


def scale_of(kind: ServedKind, item: Json) -> Json:
    """Returns an object's size as `autoscaling/v1` Scale."""
    head, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    meta = {
        key: head[key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if key in head
    }
    replicas = spec.get("replicas", 0)
    seen: Json = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta}
    seen["spec"] = {"replicas": replicas} if replicas else {}
    seen["status"] = {"replicas": status.get("replicas", 0)}
    selector = spec.get("selector")
    if selector:
        if kind.group:
            seen["status"]["selector"] = compile_selector(msgspec.convert(selector, LabelSelector)).text
        else:
            seen["status"]["selector"] = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return seen


def read_scale(core: ObjectStore, target: Target) -> Json:
    return scale_of(target.kind, _pod(core, target))


def write_scale(core: ObjectStore, target: Target, wanted: Json, wish: WriteOptions) -> Json:
    """Sets the number of replicas. Raises StatusError."""
    head, replicas = wanted.get("metadata") or {}, (wanted.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int):
        raise bad_request('Scale in version "v1" cannot be handled as a Scale: replicas must be a number')
    if head.get("name", target.name) != target.name:
        raise bad_request(f"the name of the object ({head['name']}) does not match the name on the URL ({target.name})")
    if replicas < 0:
        flaw = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_object(_SCALE, target.name, [flaw])

    def change(old: Json) -> Json:
        old["spec"]["replicas"] = replicas
        if head.get("resourceVersion"):
            old["metadata"]["resourceVersion"] = head["resourceVersion"]
        return old

    _, data = verbs.update(core, Target(target.kind, target.namespace, target.name), change, wish)
    return scale_of(target.kind, decode(data))


_SCALE = ServedKind("autoscaling/v1", "scales", "Scale")
