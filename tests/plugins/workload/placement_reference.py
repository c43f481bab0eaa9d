"""The rules of workloads and tenants for one pod and one node, with plain numbers."""

import math

from kubenexus.api.classification.workload import classify
from kubenexus.api.core import Pod
from kubenexus.framework.verdict import Code
from kubenexus.testing.harness import NodeInfo
from tests.plugins.devices.device_machine import Machine
from tests.plugins.reference import Reasons, offered, taken

RANKS = {"gold": 3, "silver": 2, "bronze": 1}
HARDWARE = {"gold": "premium", "silver": "standard", "bronze": "economy"}
POINTS = {
    "gold": {"premium": 100, "standard": 70, "economy": 60, "unknown": 70, "none": 50},
    "silver": {"premium": 20, "standard": 100, "economy": 70, "unknown": 70, "none": 50},
    "bronze": {"premium": 0, "standard": 50, "economy": 100, "unknown": 70, "none": 50},
}
CPU_ONLY = {"premium": 0, "standard": 10, "economy": 20, "unknown": 10, "none": 50}


def is_device(resource: str) -> bool:
    return resource in ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu") or resource.startswith(
        "nvidia.com/mig-"
    )


def utilization(info: NodeInfo) -> float:
    there = offered(info)
    if not there.get("cpu") or not there.get("memory"):
        return 0.0
    cpu, memory = (min(100.0 * taken(info, name) / there[name], 100.0) for name in ("cpu", "memory"))
    devices = [name for name, amount in there.items() if is_device(name) and amount]
    if not devices:
        return (35 * cpu + 35 * memory) / 70
    held = min(100.0 * sum(taken(info, name) for name in devices) / sum(there[name] for name in devices), 100.0)
    machine = Machine(info)
    healthy = [card for card in machine.cards if card.device.healthy]
    if machine.shared and healthy:
        left = min(sum(card.share for card in machine.cards), 1000 * len(healthy))
        held = max(held, 100.0 * (1000 * len(healthy) - left) / (1000 * len(healthy)))
    return (35 * cpu + 35 * memory + 30 * held) / 100


def packs(pod: Pod) -> bool:
    meta = pod.metadata
    said = meta.labels.get("workload.kubenexus.io/placement") or meta.annotations.get("workload.kubenexus.io/placement")
    return said == "pack" if said else classify(pod).type in ("batch", "training")


class WorkloadAwareScoring:
    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        used = utilization(info)
        return math.floor(used if packs(pod) else 100 - used)


class BackfillScoring:
    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        reserved = RANKS.get(info.node.metadata.labels.get("tenant.kubenexus.io/reserved-tier", ""), 0)
        above = max(reserved - RANKS["bronze"], 0)
        return max(WorkloadAwareScoring().score_one(pod, info) - 15 * above, 0)


class TenantHardwareAffinityScore:
    """For pods of a bronze tenant; `allowed`: hardware tiers that GPU pods may use, None for all."""

    def __init__(self, allowed: tuple[str, ...] | None = None, tier: str = "bronze") -> None:
        self._allowed, self._tier = allowed, tier

    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        tier = hardware(info)
        if self._allowed is None or not needs_gpus(pod) or tier == "none" or tier in self._allowed:
            return []
        return [("node(s) had GPUs of a tier that the tenant may not use", Code.UNRESOLVABLE)]

    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        if needs_gpus(pod):
            return POINTS[self._tier][hardware(info)]
        return CPU_ONLY[hardware(info)] if any(is_gpu(card) for card in Machine(info).cards) else CPU_ONLY["none"]


def is_gpu(card: object) -> bool:
    return str(card.device.kind) == "gpu"  # type: ignore[attr-defined]


def needs_gpus(pod: Pod) -> bool:
    asks = {
        name
        for each in pod.spec.containers
        for name in {**(each.resources.requests or {}), **(each.resources.limits or {})}
    }
    return any(is_device(name) for name in asks) or any("gpu-" in key for key in pod.metadata.annotations)


def hardware(info: NodeInfo) -> str:
    labels = info.node.metadata.labels
    said = labels.get("hardware.kubenexus.io/tier") or labels.get("hardware.kubenexus.io/gpu-tier")
    if said:
        return HARDWARE.get(said.lower(), said.lower())
    return "unknown" if Machine(info).cards else "none"  # the cards of the random machines have no family
