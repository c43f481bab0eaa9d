"""Objects of Kueue for tests in memory: Workloads as Kueue writes them, and pods that name one."""

from typing import Any

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod
from kubenexus.api.kueue import KueueWorkload
from kubenexus.testing.builders import a_pod

WORKLOAD = "kueue.x-k8s.io/workload"


def a_workload(name: str, *counts: int, admitted: bool = True, cpu: str = "1", **fields: Any) -> KueueWorkload:
    """A Workload with a pod set of each count. `ended` maps pod sets (`s0`, ...) to pods that are not replaced."""
    sets = [
        {
            "name": f"s{i}",
            "count": count,
            "template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}},
        }
        for i, count in enumerate(counts)
    ]
    status: dict[str, Any] = {}
    if admitted:
        assigned = [{"name": each["name"], "count": each["count"]} for each in sets]
        status["admission"] = {"clusterQueue": "all", "podSetAssignments": assigned}
        status["conditions"] = [{"type": each, "status": "True"} for each in ("QuotaReserved", "Admitted")]
    ended = fields.pop("ended", {})
    status["reclaimablePods"] = [{"name": each, "count": number} for each, number in ended.items()]
    meta = {"name": name, "namespace": fields.pop("namespace", "default"), "uid": name}
    return from_data({"metadata": meta, "spec": {"podSets": sets, **fields}, "status": status}, KueueWorkload)


def pods_of(workload: str, number: int, namespace: str = "default", **fields: Any) -> list[Pod]:
    notes = {WORKLOAD: workload, **fields.pop("annotations", {})}
    name = fields.pop("name", workload)
    return [a_pod(f"{name}-{i}", namespace=namespace, annotations=notes, **{"cpu": 1, **fields}) for i in range(number)]
