"""The columns of `kubectl get`: for each, a path into the object or a function of the object.

The column definitions were recorded from a real server; a column without a printer here is empty.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

from kubenexus.base.timestamps import parse_timestamp
from kubenexus.sim.apiserver.status_errors import Json

Cell = Callable[[Json], Any]
NONE = "<none>"
UNKNOWN = "<unknown>"


def at(item: Any, path: str) -> Any:
    """Returns the value at a path such as `.spec.replicas` or `.items[0].name`, or None."""
    for part in path.strip(".").replace("[", ".").replace("]", "").split("."):
        if isinstance(item, list):
            item = item[int(part)] if part.isdigit() and int(part) < len(item) else None
        else:
            item = item.get(part) if isinstance(item, dict) else None
    return item


def seconds_since(text: Any, now: float) -> float | None:
    when = parse_timestamp(str(text), None)
    return None if when is None else now - when


def duration(seconds: float | None) -> str:
    """Formats an age as kubectl does: `5s`, `3m10s`, `2d4h`, `400d`."""
    if seconds is None:
        return UNKNOWN
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    return next(write(max(whole, 0)) for limit, write in _SPANS if whole < limit)


def _days_of_years(whole: int) -> str:
    days = whole // 86400
    return _two(days // 365, "y", days % 365, "d")


_SPANS: tuple[tuple[float, Callable[[int], str]], ...] = (
    (120, lambda whole: f"{whole}s"),
    (600, lambda whole: _two(whole // 60, "m", whole % 60, "s")),
    (3 * 3600, lambda whole: f"{whole // 60}m"),
    (8 * 3600, lambda whole: _two(whole // 3600, "h", whole // 60 % 60, "m")),
    (48 * 3600, lambda whole: f"{whole // 3600}h"),
    (192 * 3600, lambda whole: _two(whole // 86400, "d", whole // 3600 % 24, "h")),
    (730 * 86400, lambda whole: f"{whole // 86400}d"),
    (2920 * 86400, _days_of_years),
    (math.inf, lambda whole: f"{whole // (365 * 86400)}y"),
)


def _two(large: int, large_name: str, small: int, small_name: str) -> str:
    return f"{large}{large_name}{small}{small_name}" if small else f"{large}{large_name}"


def _joined(values: Iterable[Any]) -> str:
    return ",".join(map(str, values)) or NONE


def _pairs(labels: Json | None) -> str:
    return _joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


# ---- pods ------------------------------------------------------------------------------------------------------------


def _statuses(pod: Json) -> list[Json]:
    return list((pod.get("status") or {}).get("containerStatuses") or ())


def _ready(pod: Json) -> str:
    return f"{sum(1 for each in _statuses(pod) if each.get('ready'))}/{len(pod['spec'].get('containers') or ())}"


def _pod_status(pod: Json) -> str:
    status = pod.get("status") or {}
    text = status.get("reason") or status.get("phase") or ""
    if any(each.get("reason") == "SchedulingGated" for each in status.get("conditions") or ()):
        text = "SchedulingGated"
    for each in reversed(_statuses(pod)):
        state = each.get("state") or {}
        for kind in ("waiting", "terminated"):
            if (state.get(kind) or {}).get("reason"):
                text = state[kind]["reason"]
    if "deletionTimestamp" in pod["metadata"]:
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(text)


def _gates(pod: Json) -> str:
    gates = [each.get("conditionType") for each in pod["spec"].get("readinessGates") or ()]
    met = {each["type"] for each in (pod.get("status") or {}).get("conditions") or () if each["status"] == "True"}
    return f"{sum(1 for gate in gates if gate in met)}/{len(gates)}" if gates else NONE


# ---- nodes -----------------------------------------------------------------------------------------------------------

_ROLE = "node-role.kubernetes.io/"


def _node_status(node: Json) -> str:
    conditions = {each["type"]: each["status"] for each in (node.get("status") or {}).get("conditions") or ()}
    ready = "Unknown" if "Ready" not in conditions else "Ready" if conditions["Ready"] == "True" else "NotReady"
    return f"{ready},SchedulingDisabled" if node["spec"].get("unschedulable") else ready


def _roles(node: Json) -> str:
    labels = node["metadata"].get("labels") or {}
    return _joined(sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)))


def _address(kind: str) -> Cell:
    def cell(node: Json) -> str:
        addresses = (node.get("status") or {}).get("addresses") or ()
        return next((str(each["address"]) for each in addresses if each["type"] == kind), NONE)

    return cell


# ---- workloads -------------------------------------------------------------------------------------------------------


def _of(ready: str, wanted: str) -> Cell:
    return lambda item: f"{at(item, ready) or 0}/{at(item, wanted) or 0}"


def _number(path: str) -> Cell:
    return lambda item: at(item, path) or 0


def _template(item: Json) -> list[Json]:
    template = at(item, ".spec.template") or at(item, ".spec.jobTemplate.spec.template") or {}
    return list((template.get("spec") or {}).get("containers") or ())


def _selector(item: Json) -> str:
    selector = at(item, ".spec.selector") or {}
    return _pairs(selector.get("matchLabels", selector))


WORKLOAD: dict[str, Cell | str] = {
    "Containers": lambda item: _joined(each["name"] for each in _template(item)),
    "Images": lambda item: _joined(each["image"] for each in _template(item)),
    "Selector": _selector,
    "Up-to-date": _number(".status.updatedReplicas"),
    "Available": _number(".status.availableReplicas"),
}


def _job_status(job: Json) -> str:
    for each in (job.get("status") or {}).get("conditions") or ():
        if each["status"] == "True" and each["type"] in {"Complete", "Failed", "Suspended"}:
            return str(each["type"])
    return "Terminating" if "deletionTimestamp" in job["metadata"] else "Running"


def _completions(job: Json) -> str:
    done = at(job, ".status.succeeded") or 0
    wanted = at(job, ".spec.completions")
    return f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {at(job, '.spec.parallelism') or 1}"


def _ports(service: Json) -> str:
    return _joined(f"{each['port']}/{each.get('protocol', 'TCP')}" for each in service["spec"].get("ports") or ())


def _object(event: Json) -> str:
    who = event.get("involvedObject") or event.get("regarding") or {}
    return f"{who.get('kind', '').lower()}/{who.get('name', '')}"


def _modes(item: Json) -> str:
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    return ",".join(short.get(each, each) for each in at(item, ".spec.accessModes") or ())


def _claim(item: Json) -> str:
    claim = at(item, ".spec.claimRef") or {}
    return "/".join(filter(None, (claim.get("namespace"), claim.get("name"))))


def _default_class(item: Json) -> str:
    name = str(item["metadata"]["name"])
    mark = (item["metadata"].get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class")
    return f"{name} (default)" if mark == "true" else name


PRINTERS: dict[str, dict[str, Cell | str]] = {
    "pods": {
        "Ready": _ready,
        "Status": _pod_status,
        "Restarts": lambda pod: str(sum(each.get("restartCount", 0) for each in _statuses(pod))),
        "IP": ".status.podIP",
        "Node": ".spec.nodeName",
        "Nominated Node": ".status.nominatedNodeName",
        "Readiness Gates": _gates,
    },
    "nodes": {
        "Status": _node_status,
        "Roles": _roles,
        "Version": lambda node: at(node, ".status.nodeInfo.kubeletVersion") or "",
        "Internal-IP": _address("InternalIP"),
        "External-IP": _address("ExternalIP"),
        "OS-Image": lambda node: at(node, ".status.nodeInfo.osImage") or UNKNOWN,
        "Kernel-Version": lambda node: at(node, ".status.nodeInfo.kernelVersion") or UNKNOWN,
        "Container-Runtime": lambda node: at(node, ".status.nodeInfo.containerRuntimeVersion") or UNKNOWN,
    },
    "namespaces": {"Status": ".status.phase"},
    "configmaps": {"Data": lambda item: str(len(item.get("data") or {}))},
    "secrets": {"Type": ".type", "Data": lambda item: str(len(item.get("data") or {}))},
    "services": {
        "Type": ".spec.type",
        "Cluster-IP": ".spec.clusterIP",
        "External-IP": lambda _: NONE,
        "Port(s)": _ports,
        "Selector": lambda item: _pairs(item["spec"].get("selector")),
    },
    "persistentvolumeclaims": {
        "Status": lambda item: "Terminating" if "deletionTimestamp" in item["metadata"] else at(item, ".status.phase"),
        "Volume": lambda item: at(item, ".spec.volumeName") or "",
        "Capacity": lambda item: at(item, ".status.capacity.storage") or "",
        "Access Modes": _modes,
        "StorageClass": lambda item: at(item, ".spec.storageClassName") or "",
        "VolumeMode": ".spec.volumeMode",
    },
    "persistentvolumes": {
        "Capacity": ".spec.capacity.storage",
        "Access Modes": _modes,
        "Reclaim Policy": ".spec.persistentVolumeReclaimPolicy",
        "Status": ".status.phase",
        "Claim": lambda item: "/".join(
            filter(None, (at(item, f".spec.claimRef.{key}") for key in ("namespace", "name")))
        ),
        "StorageClass": lambda item: at(item, ".spec.storageClassName") or "",
        "Reason": lambda item: at(item, ".status.reason") or "",
        "VolumeMode": ".spec.volumeMode",
    },
    "deployments.apps": {**WORKLOAD, "Ready": _of(".status.readyReplicas", ".spec.replicas")},
    "statefulsets.apps": {**WORKLOAD, "Ready": _of(".status.readyReplicas", ".spec.replicas")},
    "daemonsets.apps": {
        **WORKLOAD,
        "Desired": _number(".status.desiredNumberScheduled"),
        "Current": _number(".status.currentNumberScheduled"),
        "Ready": _number(".status.numberReady"),
        "Up-to-date": _number(".status.updatedNumberScheduled"),
        "Available": _number(".status.numberAvailable"),
        "Node Selector": lambda item: _pairs(at(item, ".spec.template.spec.nodeSelector")),
    },
    "jobs.batch": {**WORKLOAD, "Status": _job_status, "Completions": _completions, "Duration": lambda _: ""},
    "cronjobs.batch": {
        **WORKLOAD,
        "Schedule": ".spec.schedule",
        "Timezone": ".spec.timeZone",
        "Suspend": lambda item: "True" if at(item, ".spec.suspend") else "False",
        "Active": lambda item: len(at(item, ".status.active") or ()),
    },
    "poddisruptionbudgets.policy": {
        "Min Available": lambda item: str(_or(at(item, ".spec.minAvailable"), "N/A")),
        "Max Unavailable": lambda item: str(_or(at(item, ".spec.maxUnavailable"), "N/A")),
        "Allowed Disruptions": _number(".status.disruptionsAllowed"),
    },
    "leases.coordination.k8s.io": {"Holder": lambda item: at(item, ".spec.holderIdentity") or ""},
    "priorityclasses.scheduling.k8s.io": {
        "Value": _number(".value"),
        "Global-Default": lambda item: bool(item.get("globalDefault")),
        "PreemptionPolicy": ".preemptionPolicy",
    },
    "storageclasses.storage.k8s.io": {
        "Name": _default_class,
        "Provisioner": ".provisioner",
        "ReclaimPolicy": ".reclaimPolicy",
        "VolumeBindingMode": ".volumeBindingMode",
        "AllowVolumeExpansion": lambda item: bool(item.get("allowVolumeExpansion")),
    },
    "csinodes.storage.k8s.io": {"Drivers": lambda item: len(at(item, ".spec.drivers") or ())},
    "resourceslices.resource.k8s.io": {
        "Node": ".spec.nodeName",
        "Driver": ".spec.driver",
        "Pool": ".spec.pool.name",
    },
    "resourceclaims.resource.k8s.io": {
        "State": lambda item: "allocated,reserved" if at(item, ".status.reservedFor") else "pending"
    },
    "events": {
        "Type": ".type",
        "Reason": ".reason",
        "Object": _object,
        "Message": lambda item: item.get("message", item.get("note", "")),
        "Source": lambda item: at(item, ".source.component") or item.get("reportingComponent", ""),
        "Count": lambda item: item.get("count", 1),
        "Subobject": lambda item: at(item, ".involvedObject.fieldPath") or "",
    },
    "customresourcedefinitions.apiextensions.k8s.io": {"Group": ".spec.group", "Kind": ".spec.names.kind"},
}
_REPLICAS: dict[str, Cell | str] = {
    **WORKLOAD,
    "Desired": _number(".spec.replicas"),
    "Current": _number(".status.replicas"),
    "Ready": _number(".status.readyReplicas"),
}
PRINTERS["replicasets.apps"] = PRINTERS["replicationcontrollers"] = _REPLICAS


def _or(value: Any, other: Any) -> Any:
    return other if value is None else value
