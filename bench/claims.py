"""The benches of device claims: pods with a claim for one GPU, beside the same pods with `nvidia.com/gpu: 1`.

The yardstick of these rows is the pod with the plain number, in the same run: `ratio` is what a claim costs. Nodes have
eight GPUs. A slice describes them as NVIDIA's driver does: model, architecture and a UUID for each, and the memory.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, Final

import msgspec

from bench.cluster import decide_and_commit
from bench.devices import GPUS, KINDS, gpu_node
from bench.measure import Round
from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod, PodResourceClaim, PodResourceClaimStatus, PodStatus
from kubenexus.api.devices.resource_claim import DeviceClass, ResourceClaim
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_pod
from kubenexus.testing.harness import a_ledger

DRIVER: Final = "gpu.nvidia.com"
DRAIN: Final = 400  # pods that are placed before they are all taken back
_MEMORY: Final = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
_MODEL: Final = f'device.attributes["{DRIVER}"].productName.contains("H100")'
_ROOT: Final = "resource.kubernetes.io/pcieRoot"
SPECS: Final[dict[str, dict[str, Any]]] = {
    "1 GPU": {"count": 1},
    "4 GPUs": {"count": 4},
    "2 GPUs on a root": {"count": 2, "constraint": _ROOT},
}
_numbers = itertools.count()


def gpu_slice(node: int) -> ResourceSlice:
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {
                "productName": {"string": "NVIDIA H100 80GB HBM3"},
                "architecture": {"string": "Hopper"},
                "driverVersion": {"version": "560.35.3"},
                "uuid": {"string": f"GPU-{node}-{i}"},
                _ROOT: {"string": f"pci{i // 2}"},
            },
            "capacity": {"memory": {"value": "81559Mi"}},
        }
        for i in range(GPUS)
    ]
    name = f"gpu-{node}"
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return from_data({"metadata": {"name": name, "uid": name}, "spec": spec}, ResourceSlice)


def gpu_class() -> DeviceClass:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return from_data({"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}}, DeviceClass)


def gpu_claim(number: int, count: int, constraint: str = "", *, minimum: int = 40) -> ResourceClaim:
    """A claim as one that was made from a template; `minimum` tells classes apart."""
    expressions = [_MODEL, _MEMORY.replace("40Gi", f"{minimum}Mi")]
    exactly = {
        "deviceClassName": DRIVER,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": each}} for each in expressions],
    }
    devices: dict[str, Any] = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if constraint:
        devices["constraints"] = [{"matchAttribute": constraint}]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"p-{number}", "uid": f"uid-{number}", "controller": True}
    meta = {"name": f"c-{number}", "namespace": "default", "uid": f"claim-{number}", "ownerReferences": [owner]}
    return from_data({"metadata": meta, "spec": {"devices": devices}}, ResourceClaim)


@functools.lru_cache(maxsize=4)
def _template(gpus: int, cpu: int) -> Pod:
    made = a_pod("template", cpu=f"{cpu}m", gpu=gpus or None)
    if gpus:
        return made
    claims = [PodResourceClaim(name="gpu", resource_claim_template_name="gpu")]
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, resource_claims=claims))


class Deciding:
    """Pods on one cluster, with one planner. `claimed`: by claims, else by number. `cold`: each is a class of its own,
    with a selector that was never seen."""

    def __init__(self, nodes: int, case: str, calls: int, *, claimed: bool, cold: bool) -> None:
        self._ledger: Ledger = a_ledger([gpu_node(i, KINDS["1 GPU"]) for i in range(nodes)])
        self._planner = Planner(profile_plugins(default_profile()))
        self._spec, self._claimed, self._cold = SPECS[case], claimed, cold
        self._calls: int = min(calls, nodes * GPUS // self._spec["count"] // 2)
        self._most = min(DRAIN, nodes * GPUS // self._spec["count"] - self._calls)
        self._classes = itertools.count(1000)
        self._placed: list[Pod] = []
        if claimed:
            self._ledger.upsert_device_class(gpu_class())
            for i in range(nodes):
                self._ledger.upsert_resource_slice(gpu_slice(i))

    def round(self) -> float:
        spent = 0.0
        for _ in range(self._calls):
            pod = self._pod()
            job = Job.of(pod)
            spent += decide_and_commit(self._planner, job, self._ledger)
            self._placed.append(pod)
        if len(self._placed) >= self._most:
            self._drain()
        return spent / self._calls

    def _pod(self) -> Pod:
        """Pods of one template share their spec, as the event handlers have them share it."""
        number, level = next(_numbers), next(self._classes) if self._cold else 1000
        meta = {"name": f"p-{number}", "uid": f"uid-{number}"}
        made = _template(0 if self._claimed else self._spec["count"], 100 if self._claimed else level)
        made = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, **meta))
        if not self._claimed:
            return made
        self._ledger.upsert_resource_claim(gpu_claim(number, minimum=level, **self._spec))
        known = [PodResourceClaimStatus(name="gpu", resource_claim_name=f"c-{number}")]
        return msgspec.structs.replace(made, status=PodStatus(resource_claim_statuses=known))

    def _drain(self) -> None:
        for pod in self._placed:
            self._ledger.forget(pod.key)
            for each in pod.status.resource_claim_statuses or ():
                self._ledger.remove_resource_claim(f"default/{each.resource_claim_name}")
        self._placed.clear()


def pairs(nodes: int) -> dict[tuple[str, str], Callable[[], tuple[Round, Round]]]:
    """By bench and case: makes the round with claims and the one with plain numbers."""

    def deciding(case: str, calls: int, *, cold: bool) -> Callable[[], tuple[Round, Round]]:
        return lambda: (
            Deciding(nodes, case, calls, claimed=True, cold=cold).round,
            Deciding(nodes, case, calls, claimed=False, cold=cold).round,
        )

    made: dict[tuple[str, str], Callable[[], tuple[Round, Round]]] = {}
    for case in SPECS:
        made["claims.warm", case] = deciding(case, 40, cold=False)
        made["claims.cold", case] = deciding(case, 8, cold=True)
    return made
