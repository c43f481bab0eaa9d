"""Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs: defaults, templates, selectors."""

from collections.abc import Callable
from typing import Any

import msgspec

from kubenexus.api.selectors import LabelSelector, compile_selector
from kubenexus.base.errors import Malformed
from kubenexus.sim.apiserver import names
from kubenexus.sim.apiserver.optional_kinds import POD_GROUP_CLAIMS
from kubenexus.sim.apiserver.rules.base import ClusterReader, Rule
from kubenexus.sim.apiserver.rules.pod_spec import check_pod_spec
from kubenexus.sim.apiserver.rules.templates import default_pod_spec, fill
from kubenexus.sim.apiserver.status_errors import FieldError, Json, immutable, invalid, required


def _template(spec: Json) -> Json:
    template: Json = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))
    return template


def _default_deployment(item: Json) -> None:
    spec = item.setdefault("spec", {})
    _template(spec)
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    strategy = spec.setdefault("strategy", {})
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})


def _default_replica_set(item: Json) -> None:
    spec = item.setdefault("spec", {})
    fill(spec, {"replicas": 1})
    _template(spec)


def _default_controller(item: Json) -> None:
    _default_replica_set(item)
    labels = item["spec"]["template"]["metadata"].get("labels")
    if labels:
        fill(item["spec"], {"selector": labels})
        fill(item["metadata"], {"labels": dict(labels)})


def _default_stateful_set(item: Json) -> None:
    spec = item.setdefault("spec", {})
    _template(spec)
    fill(spec, {"replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10})
    strategy = spec.setdefault("updateStrategy", {})
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), {"partition": 0, "maxUnavailable": 1})
    kept = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    fill(kept, {"whenDeleted": "Retain", "whenScaled": "Retain"})


def _default_daemon_set(item: Json) -> None:
    spec = item.setdefault("spec", {})
    _template(spec)
    fill(spec, {"revisionHistoryLimit": 10})
    strategy = spec.setdefault("updateStrategy", {})
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), {"maxUnavailable": 1, "maxSurge": 0})


def default_job(item: Json) -> None:
    spec = item.setdefault("spec", {})
    _template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    usual: Json = {"parallelism": 1, "completionMode": "NonIndexed", "suspend": False, "manualSelector": False}
    fill(spec, {**usual, "podReplacementPolicy": "TerminatingOrFailed"})
    fill(spec, {"backoffLimit": 2**31 - 1 if "backoffLimitPerIndex" in spec else 6})


def _admit_job(item: Json, _: ClusterReader) -> None:
    """Sets the job's selector to its own uid, unless `manualSelector` is set."""
    spec, meta = item["spec"], item["metadata"]
    if spec.get("manualSelector"):
        return
    identity = {"batch.kubernetes.io/controller-uid": meta["uid"]}
    labels = spec["template"]["metadata"].setdefault("labels", {})
    name = {"job-name": meta.get("name", ""), "batch.kubernetes.io/job-name": meta.get("name", "")}
    labels |= identity | {"controller-uid": meta["uid"]} | name
    spec.setdefault("selector", {}).setdefault("matchLabels", {}).update(identity)
    meta.setdefault("labels", dict(labels))


def _default_cron_job(item: Json) -> None:
    spec = item.setdefault("spec", {})
    usual = {"concurrencyPolicy": "Allow", "suspend": False}
    fill(spec, {**usual, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    _template(template.setdefault("spec", {}))


# ---- checks ----------------------------------------------------------------------------------------------------------


def _check(item: Json) -> list[FieldError]:
    spec = item["spec"]
    flaws = _negative(spec, "replicas", "minReadySeconds")
    selector = spec.get("selector")
    if selector is None:
        flaws.append(required("spec.selector"))
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        flaws.append(invalid("spec.selector", selector, "empty selector is invalid for deployment"))
    flaws += names.check_selector(selector, "spec.selector") + _check_labels(spec, selector)
    return flaws + check_pod_spec(spec["template"]["spec"], "spec.template.spec") + _check_restart(spec)


def _negative(spec: Json, *fields: str) -> list[FieldError]:
    why = "must be greater than or equal to 0"
    return [invalid(f"spec.{field}", spec[field], why) for field in fields if spec.get(field, 0) < 0]


def _check_labels(spec: Json, selector: Any) -> list[FieldError]:
    labels = spec["template"]["metadata"].get("labels") or {}
    try:
        wanted = compile_selector(msgspec.convert(selector, LabelSelector | None))
    except (Malformed, msgspec.ValidationError):
        return []
    if selector is None or wanted.matches(labels):
        return []
    return [invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")]


def _check_restart(spec: Json) -> list[FieldError]:
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        return []
    field = "spec.template.spec.restartPolicy"
    return [FieldError(field, "FieldValueNotSupported", f'Unsupported value: "{policy}": supported values: "Always"')]


def _check_job(item: Json) -> list[FieldError]:
    spec = item["spec"]
    counts = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
    flaws = _negative(spec, *counts)
    if spec.get("completionMode") == "Indexed" and "completions" not in spec:
        flaws.append(required("spec.completions", "when completion mode is Indexed"))
    if spec.get("selector") is None:
        flaws.append(required("spec.selector"))
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        field = "spec.template.spec.restartPolicy"
        flaws.append(required(field, 'valid values: "OnFailure", "Never"'))
    return flaws + check_pod_spec(spec["template"]["spec"], "spec.template.spec")


def _same(*fields: str) -> Callable[[Json, Json], list[FieldError]]:
    def check(new: Json, old: Json) -> list[FieldError]:
        return [
            immutable(f"spec.{field}", new["spec"].get(field))
            for field in fields
            if new["spec"].get(field) != old["spec"].get(field)
        ]

    return check


def _admit_pod_group(item: Json, cluster: ClusterReader) -> None:
    """Drops a field whose gate is off, as the real server does."""
    if not cluster.has_gate(POD_GROUP_CLAIMS):
        item.get("spec", {}).pop("resourceClaims", None)


def _no_status(_: Json) -> Json:
    return {}


_COUNTED = {"replicas": 0}
_NODES = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}


def _spec_and_annotations(item: Json) -> Any:
    return item["spec"], item["metadata"].get("annotations")


DEPLOYMENT = Rule(
    counted=_spec_and_annotations,
    default=_default_deployment,
    check=_check,
    check_update=_same("selector"),
    status=_no_status,
    generation=True,
)
REPLICA_SET = Rule(
    default=_default_replica_set,
    check=_check,
    check_update=_same("selector"),
    status=lambda _: dict(_COUNTED),
    generation=True,
)
CONTROLLER = Rule(default=_default_controller, status=lambda _: dict(_COUNTED), generation=True, returns_deleted=True)
STATEFUL_SET = Rule(
    default=_default_stateful_set,
    check=_check,
    check_update=_same("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"),
    status=lambda _: {**_COUNTED, "availableReplicas": 0},
    generation=True,
)
DAEMON_SET = Rule(
    default=_default_daemon_set,
    check=_check,
    check_update=_same("selector"),
    status=lambda _: dict(_NODES),
    generation=True,
)
JOB = Rule(
    default=default_job,
    admit=_admit_job,
    check=_check_job,
    check_update=_same("selector", "completionMode", "template"),
    status=_no_status,
    generation=True,
    returns_deleted=True,
)
CRON_JOB = Rule(default=_default_cron_job, status=_no_status, generation=True)
POD_GROUP = Rule(
    admit=_admit_pod_group,
    check_update=_same("schedulingPolicy", "schedulingConstraints", "resourceClaims"),
    status=_no_status,
    generation=True,
)
