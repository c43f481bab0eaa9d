"""The defaults of a pod spec, in pods and in the templates of workloads."""

from typing import Any

from kubenexus.sim.apiserver.status_errors import Json

_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_MODES = {"secret": "defaultMode", "configMap": "defaultMode", "projected": "defaultMode", "downwardAPI": "defaultMode"}


def fill(target: Json, defaults: Json) -> None:
    """Sets missing keys. The values are not copied, so they must be immutable or unshared."""
    for key, value in defaults.items():
        if key not in target:
            target[key] = value


def drop_false(target: Json, *keys: str) -> None:
    """Removes keys that are false, as Go's omitempty does."""
    for key in keys:
        if target.get(key) is False:
            del target[key]


def default_pod_spec(spec: Json) -> None:
    for containers in ("initContainers", "containers"):
        for container in spec.get(containers) or ():
            _default_container(container)
            if spec.get("hostNetwork"):
                _host_ports(container)
    fill(spec, {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst"})
    fill(spec, {"securityContext": {}, "schedulerName": "default-scheduler"})
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    drop_false(spec, "hostNetwork", "hostPID", "hostIPC")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}


def _default_container(container: Json) -> None:
    drop_false(container, "stdin", "stdinOnce", "tty")
    for port in container.get("ports") or ():
        fill(port, {"protocol": "TCP"})
    resources = container.setdefault("resources", {})
    _requests_from_limits(resources)
    fill(container, {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})
    fill(container, {"imagePullPolicy": _pull_policy(container.get("image", ""))})
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            _default_probe(container[probe])
    for variable in container.get("env") or ():
        source = (variable.get("valueFrom") or {}).get("fieldRef")
        if source:
            fill(source, {"apiVersion": "v1"})


def _default_probe(probe: Json) -> None:
    fill(probe, _PROBE)
    if "httpGet" in probe:
        fill(probe["httpGet"], {"scheme": "HTTP", "path": "/"})


def _default_volume(volume: Json) -> None:
    if len(volume) == 1:  # only a name
        volume["emptyDir"] = {}
    if "hostPath" in volume:
        fill(volume["hostPath"], {"type": ""})
    for source, key in _MODES.items():
        if source in volume:
            fill(volume[source], {key: 420})


def _requests_from_limits(resources: Json) -> None:
    limits: dict[str, Any] = resources.get("limits") or {}
    if limits:
        requests = resources.setdefault("requests", {})
        fill(requests, limits)


def _host_ports(container: Json) -> None:
    for port in container.get("ports") or ():
        if "containerPort" in port:
            fill(port, {"hostPort": port["containerPort"]})


def _pull_policy(image: str) -> str:
    last = image.rpartition("/")[2]
    if "@" in last:
        return "IfNotPresent"
    return "Always" if ":" not in last or last.endswith(":latest") else "IfNotPresent"
