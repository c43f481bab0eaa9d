"""The status of a pod as a kubelet writes it, as merge patches: running, succeeded, rejected."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.base.timestamps import format_time
from kubenexus.sim.kubelets.types import Container, Pod

Status = Mapping[str, Any]


class KubeletRejection(msgspec.Struct, frozen=True):
    """Why a node does not run a pod that was bound to it, with kubelet's reasons: OutOfcpu, NodeAffinity, ..."""

    reason: str
    message: str = ""


def running(pod: Pod, now: float, pod_ip: str, host_ip: str) -> Status:
    """All containers run and are ready; the init containers have succeeded."""
    since = format_time(now)
    status = {
        "phase": "Running",
        "startTime": since,
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "conditions": _conditions(since, "True"),
        "containerStatuses": [_runs(each, since) for each in pod.spec.containers],
        "initContainerStatuses": [_initialised(each, since) for each in pod.spec.init_containers],
    }
    return status | ({"hostIP": host_ip, "hostIPs": [{"ip": host_ip}]} if host_ip else {})


def succeeded(pod: Pod, now: float) -> Status:
    """All containers have ended with 0."""
    until = format_time(now)
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": pod.status.start_time or until, "finishedAt": until}
    return {
        "phase": "Succeeded",
        "conditions": _conditions(until, "False", "PodCompleted"),
        "containerStatuses": [_status(each, ready=False, state={"terminated": ended}) for each in pod.spec.containers],
    }


def refused(refusal: KubeletRejection, now: float) -> Status:
    """The node did not admit the pod."""
    message = refusal.message or f"Pod was rejected: {refusal.reason}"
    return {"phase": "Failed", "reason": refusal.reason, "message": message, "startTime": format_time(now)}


def _conditions(since: str, ready: str, reason: str = "") -> list[dict[str, str]]:
    extra = {"reason": reason} if reason else {}
    states = {"PodReadyToStartContainers": ready, "Initialized": "True", "ContainersReady": ready, "Ready": ready}
    return [{"type": type, "status": now, "lastTransitionTime": since, **extra} for type, now in states.items()]


def _runs(container: Container, since: str) -> dict[str, Any]:
    return _status(container, ready=True, state={"running": {"startedAt": since}})


def _initialised(container: Container, since: str) -> dict[str, Any]:
    if container.restart_policy == "Always":  # a sidecar
        return _runs(container, since)
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": since}
    return _status(container, ready=True, state={"terminated": ended})


def _status(container: Container, *, ready: bool, state: Mapping[str, Any]) -> dict[str, Any]:
    said = {"name": container.name, "image": container.image, "imageID": "", "restartCount": 0}
    return {**said, "ready": ready, "started": "running" in state, "state": state}
