"""The golden vectors of the rules about workloads and tenants: what the first KubeNexus answers, and what ours do.

Each row is reproduced, or a deliberate change with the id of the bug that it mends. `make docs` writes the table to
docs/placement-golden.md (`golden_page`).
"""

from functools import partial

from kubenexus.api.core import Node, Pod
from kubenexus.api.keys import gpu, tenant, workload
from kubenexus.testing.builders import GPU, a_node, a_pod
from tests.golden_vectors import Vector
from tests.plugins.devices.golden import answer

TRAINING, SERVICE = {workload.TYPE.key: "training"}, {workload.TYPE.key: "service"}
BATCH = {workload.TYPE.key: "batch"}
PREEMPTIBLE, BACKFILL = {workload.TYPE.key: "service", tenant.PREEMPTIBLE.key: "true"}, {tenant.BACKFILL.key: "true"}
WORKLOAD, FILLING, HARDWARE = "WorkloadAwareScoring", "BackfillScoring", "TenantHardwareAffinityScore"


def a_machine(gpus: int = 8, resource: str = GPU, labels: dict[str, str] | None = None) -> Node:
    resources = {resource: gpus} if gpus else {}
    return a_node("n", cpu=32, memory="128Gi", resources=resources, labels=labels)


def resident(cpu: int, memory: str, gpus: int = 0) -> Pod:
    return a_pod("resident", cpu=cpu, memory=memory, gpu=gpus or None, node="n")


USED = resident(4, "16Gi", 4)  # 12.5 %, 12.5 % and 50 %: 23.75
HALF = resident(16, "64Gi")  # half of a node without GPUs


def works(labels: dict[str, str], *pods: Pod, gpus: int = 8) -> str:
    return answer(WORKLOAD, a_pod(cpu=4, memory="16Gi", labels=labels), a_machine(gpus), pods=pods)


WORKLOAD_VECTORS: tuple[Vector, ...] = (
    Vector("training, 4 of 32 cpu, 16 of 128Gi, 4 of 8 GPUs", lambda: works(TRAINING, USED), "23", "23"),
    Vector("training, an empty node", lambda: works(TRAINING), "0", "0"),
    Vector("service, 4 of 32 cpu, 16 of 128Gi, 4 of 8 GPUs", lambda: works(SERVICE, USED), "76", "76"),
    Vector("service, an empty node", lambda: works(SERVICE), "100", "100"),
    Vector("batch, half of a node without GPUs", lambda: works(BATCH, HALF, gpus=0), "35", "50", "WA-1"),
    Vector("service, half of a node without GPUs", lambda: works(SERVICE, HALF, gpus=0), "65", "50", "WA-1"),
    Vector(
        "a node without memory",
        lambda: answer(WORKLOAD, a_pod(labels=TRAINING), a_node("n", cpu=4, memory=0)),
        "0",
        "0",
    ),
)


def fills(
    labels: dict[str, str],
    *pods: Pod,
    gpus: int = 8,
    namespace: str = "bronze",
    priority: int = 0,
    node: dict[str, str] | None = None,
) -> str:
    pod = a_pod(cpu=1, labels=labels, namespace=namespace, priority=priority)
    return answer(FILLING, pod, a_machine(gpus, labels=node), pods=pods)


KEPT = {tenant.RESERVED_TIER.key: "gold"}
BACKFILL_VECTORS: tuple[Vector, ...] = (
    Vector("a regular service, 23.75 % in use", lambda: fills(SERVICE, USED), "23", "50", "X-1"),
    Vector("a regular batch pod, 23.75 % in use", lambda: fills(BATCH, USED), "23", "50", "X-1"),
    Vector("a pod of priority 0 without a mark, 23.75 % in use", lambda: fills({}, USED), "76", "50", "X-2"),
    Vector("a preemptible service, 23.75 % in use", lambda: fills(PREEMPTIBLE, USED), "76", "76"),
    Vector("a preemptible service, an empty node", lambda: fills(PREEMPTIBLE), "100", "100"),
    Vector("a preemptible batch pod, 23.75 % in use", lambda: fills({**BATCH, **BACKFILL}, USED), "76", "23", "X-1"),
    Vector("a service with the label `scheduling.kubenexus.io/backfill`", lambda: fills(BACKFILL, USED), "76", "76"),
    Vector("a service of priority -1, 23.75 % in use", lambda: fills(SERVICE, USED, priority=-1), "76", "76"),
    Vector(
        "preemptible service, half without GPUs",
        lambda: fills(PREEMPTIBLE, HALF, gpus=0),
        "65",
        "50",
        "BF-3",
    ),
    Vector(
        "preemptible bronze service, reserved for gold", lambda: fills(PREEMPTIBLE, USED, node=KEPT), "76", "46", "BF-2"
    ),
    Vector(
        "a preemptible gold service, reserved for gold",
        lambda: fills(PREEMPTIBLE, USED, namespace="gold", node=KEPT),
        "76",
        "76",
    ),
    Vector("a regular bronze service, reserved for gold", lambda: fills(SERVICE, USED, node=KEPT), "0", "50", "BF-2"),
)


def prefers(tier: str, tier_label: str = "", model: str = "", key: str = gpu.HARDWARE_TIER.key, gpus: int = 1) -> str:
    labels = ({key: tier_label} if tier_label else {}) | ({gpu.MODEL.key: model} if model else {})
    resource = "amd.com/gpu" if model.startswith("MI") else GPU
    pod = a_pod(namespace=tier, requests={resource: gpus} if gpus else None)
    return answer(HARDWARE, pod, a_machine(8 if tier_label or model else 0, resource, labels))


def changed(before: int, ours: int) -> str:
    return "" if before == ours else "TH-4"


_BEFORE = {"gold": (100, 70, 60), "silver": (20, 100, 70), "bronze": (20, 20, 100)}
_OURS = {"gold": (100, 70, 60), "silver": (20, 100, 70), "bronze": (0, 50, 100)}
_MATRIX = tuple(
    Vector(
        f"{tier}, {hardware}",
        partial(prefers, tier, hardware),
        str(before),
        str(ours),
        "" if before == ours else "TH-4",
    )
    for tier in _BEFORE
    for hardware, before, ours in zip(("premium", "standard", "economy"), _BEFORE[tier], _OURS[tier], strict=True)
)
_MODELS = {"H100": "100", "H200": "100", "A100-80GB": "100", "MI300X": "100", "A100": "70", "A40": "70", "MI250": "70"}
_MODELS |= {"L40": "60", "L4": "60", "T4": "60", "A10": "60", "A16": "60"}
HARDWARE_VECTORS: tuple[Vector, ...] = (
    *_MATRIX,
    *(
        Vector(f"gold, model {model}", partial(prefers, "gold", model=model), said, said)
        for model, said in _MODELS.items()
    ),
    Vector("gold, a node without GPUs", lambda: prefers("gold"), "50", "50"),
    Vector("bronze, hardware tier `gold`", lambda: prefers("bronze", "gold"), "70", "0", "TH-2"),
    Vector("gold, hardware tier `Gold`", lambda: prefers("gold", "Gold"), "70", "100", "TH-2"),
    Vector("gold, hardware tier `bronze`", lambda: prefers("gold", "bronze"), "70", "60", "TH-2"),
    Vector(
        "bronze, the label `hardware.kubenexus.io/gpu-tier: gold`",
        lambda: prefers("bronze", "gold", key="hardware.kubenexus.io/gpu-tier"),
        "50",
        "0",
        "TH-3",
    ),
    Vector("a gold pod without GPUs, premium", lambda: prefers("gold", "premium", gpus=0), "100", "0", "TH-1"),
    Vector("a bronze pod without GPUs, economy", lambda: prefers("bronze", "economy", gpus=0), "100", "20", "TH-1"),
    Vector("a gold pod without GPUs, a node without GPUs", lambda: prefers("gold", gpus=0), "50", "50"),
)

SECTIONS: dict[str, tuple[Vector, ...]] = {
    "WorkloadAwareScoring": WORKLOAD_VECTORS,
    "BackfillScoring": BACKFILL_VECTORS,
    "TenantHardwareAffinityScore": HARDWARE_VECTORS,
}
