"""The golden vectors of the device rules: what the first KubeNexus, written in Go, answers, and what ours do.

Each row is reproduced, or a deliberate change with the id of the bug that it mends. `make docs` writes the table to
docs/devices-golden.md (`golden_page`).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device import UNKNOWN, Device, Link, NodeDevices
from kubenexus.api.devices.device_share import DeviceShare, devices_annotation
from kubenexus.api.keys import discovered, gpu, tenant
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import Namespace
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.plugins import BUILT_IN, profile_plugins, shipped_profile
from kubenexus.testing.builders import GPU, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from kubenexus.testing.reference_check import ACCEPTED, plugin_answers
from tests.golden_vectors import Vector

GIB = 1 << 30
VRAM, FRAGMENTATION, TOPOLOGY = "VRAMScheduler", "ResourceFragmentationScore", "GPUTopology"
REFUSED = "refused"
_PLUGINS = profile_plugins(shipped_profile())


def answer(plugin: str, pod: Pod, node: Node, devices: NodeDevices | None = None, *, pods: tuple[Pod, ...] = ()) -> str:
    """Returns the score of a node, or `REFUSED`, as one plugin of the shipped profile answers."""
    ledger = a_ledger([node], pods)
    for tier in ("gold", "silver", "bronze"):
        meta = ObjectMeta(name=tier, labels={tenant.TIER.key: tier})
        ledger.upsert_namespace(Namespace(metadata=meta))
    if devices is not None:
        ledger.set_devices(node.metadata.name, devices)
    rule: Any = BUILT_IN[plugin]({})
    pod_class = ClassCache(_PLUGINS).lookup(pod, ledger.nodes).table.pod
    if plugin not in pod_class.signed:
        return str(rule.default_score)
    found = plugin_answers(rule, pod, ledger, None, pod_class)
    if found.refusals[node.metadata.name] != ACCEPTED:
        return REFUSED
    return str((found.scores or {})[node.metadata.name])


# --- GPU memory -------------------------------------------------------------------------------------------------------


def a_card_node(number: int, labels: Mapping[str, str] | None = None) -> Node:
    return a_node("n", resources={GPU: number}, labels=labels)


def fits(tier: str, percent: int) -> str:
    """The score of a pod that needs so much of a 50Gi card."""
    pod = a_pod(namespace=tier, gpu=1, annotations={gpu.VRAM_REQUEST.key: f"{percent * GIB // 2}"})
    return answer(VRAM, pod, a_card_node(1, {gpu.VRAM.key: "50Gi"}))


def needs(text: str, model: str, number: int = 1, key: str = gpu.VRAM_REQUEST.key, label: str = gpu.MODEL.key) -> str:
    pod = a_pod(namespace="silver", gpu=number, annotations={key: text})
    return answer(VRAM, pod, a_card_node(number, {label: model}))


def passes(text: str, model: str, number: int = 1, label: str = gpu.MODEL.key) -> str:
    return REFUSED if needs(text, model, number, label=label) == REFUSED else "passes"


def together(number: int, *cards: dict[str, Any], taken: tuple[int, ...] = ()) -> str:
    """The points for GPUs that are together: of a pod that needs 30% of each 50Gi card, which are 30 points."""
    devices = tuple(Device(name=f"gpu-{i}", resource=GPU, memory=50 * GIB, **card) for i, card in enumerate(cards))
    held = devices_annotation(tuple(DeviceShare(f"gpu-{slot}") for slot in taken))
    pods = (a_pod("h", gpu=len(taken), node="n", annotations={gpu.DEVICES.key: held}),) if taken else ()
    pod = a_pod(gpu=number, annotations={gpu.VRAM_REQUEST.key: "15Gi"})
    found = answer(VRAM, pod, a_card_node(len(cards)), NodeDevices(devices), pods=pods)
    return str(int(found) - 30) if found != REFUSED else found


def numa(*numbers: int) -> list[dict[str, Any]]:
    return [{"numa": number} for number in numbers]


ISLAND: dict[str, Any] = {"island": 0, "link": Link.NVLINK}
ALL: dict[str, Any] = ISLAND | {"numa": 0, "switch": 0}
TOTAL = gpu.VRAM_REQUEST_TOTAL.key
PRODUCT = discovered.PRODUCT.key

MEMORY_VECTORS: tuple[Vector, ...] = (
    *(
        Vector(f"{tier} tenant, {percent}% of a GPU", partial(fits, tier, percent), str(points), str(points))
        for tier, table in {
            "silver": {100: 100, 96: 100, 90: 80, 70: 80, 60: 60, 50: 60, 40: 30, 30: 30, 20: 0},
            "gold": {98: 100, 96: 80, 84: 60, 70: 60, 50: 30, 40: 0},
            "bronze": {90: 100, 60: 80, 40: 60, 30: 30, 10: 0},
        }.items()
        for percent, points in table.items()
    ),
    Vector("bronze tenant, 20% of a GPU", lambda: fits("bronze", 20), "10", "30", "VRAM-11"),
    Vector("nothing stated", lambda: answer(VRAM, a_pod(gpu=1), a_card_node(1)), "60", "60"),
    Vector("80Gi, memory of the GPUs not known", lambda: needs("80Gi", "unknown"), REFUSED, REFUSED),
    *(
        Vector(f"{text} on one {model}", partial(passes, text, model), said, said)
        for text, by_model in {
            "80Gi": {"H100": "passes", "L40S": REFUSED, "T4": REFUSED},
            "40Gi": {"H100": "passes", "L40S": "passes", "T4": REFUSED},
            "15Gi": {"H100": "passes", "L40S": "passes", "T4": "passes"},
        }.items()
        for model, said in by_model.items()
    ),
    Vector("60Gi on one H100: a large GPU that is well filled", lambda: needs("60Gi", "H100"), "90", "90"),
    Vector("`vram-request` 160Gi with two H100", lambda: passes("160Gi", "H100", 2), "passes", REFUSED, "VRAM-1"),
    Vector("`vram-request-total` 160Gi with two H100", lambda: needs("160Gi", "H100", 2, TOTAL), "60", "100", "VRAM-1"),
    Vector(
        "480Gi for eight H100 together: bonuses, too",
        lambda: needs("480Gi", "NVIDIA-H100-80GB-HBM3", 8, TOTAL, PRODUCT),
        "80",
        "100",
        "VRAM-2",
    ),
    Vector(
        "80Gi, product NVIDIA-A100-SXM4-80GB",
        lambda: passes("80Gi", "NVIDIA-A100-SXM4-80GB", label=PRODUCT),
        REFUSED,
        "passes",
        "VRAM-9",
    ),
    Vector(
        "40Gi, product NVIDIA-RTX-A4000",
        lambda: passes("40Gi", "NVIDIA-RTX-A4000", label=PRODUCT),
        "passes",
        REFUSED,
        "VRAM-9",
    ),
    Vector("`40GB` on one L40S", lambda: needs("40GB", "L40S"), "60", "80", "VRAM-10"),
)

TOGETHER_VECTORS: tuple[Vector, ...] = (
    Vector("2 GPUs, on one NUMA node", lambda: together(2, *numa(0, 0)), "15", "15"),
    Vector("2 GPUs, joined by NVLink", lambda: together(2, ISLAND, ISLAND), "25", "25"),
    Vector("4 GPUs, on one switch", lambda: together(4, *[{"switch": 0}] * 4), "10", "10"),
    Vector("8 GPUs, all of it", lambda: together(8, *[ALL] * 8), "50", "50"),
    Vector("4 GPUs, two and two on NUMA nodes", lambda: together(4, *numa(0, 0, 1, 1)), "0", "0"),
    Vector("4 GPUs, three and five on NUMA nodes", lambda: together(4, *numa(0, 0, 0, 1, 1, 1, 1, 1)), "15", "15"),
    Vector("1 GPU", lambda: together(1, ALL, ALL), "0", "0"),
    Vector("2 GPUs, NUMA node not known", lambda: together(2, *numa(UNKNOWN, UNKNOWN)), "0", "0"),
    Vector(
        "2 GPUs of one model, switch not known",
        lambda: together(2, {"model": "H100"}, {"model": "H100"}),
        "10",
        "0",
        "VRAM-6",
    ),
    Vector(
        "2 GPUs, linked only through one that is taken",
        lambda: together(
            2,
            ISLAND | {"peers": ("gpu-1", "gpu-2")},
            ISLAND | {"peers": ("gpu-0",)},
            ISLAND | {"peers": ("gpu-0",)},
            taken=(0,),
        ),
        "25",
        "0",
        "VRAM-7",
    ),
    Vector(
        "2 GPUs on one NUMA node, one of which is taken",
        lambda: together(2, *numa(0, 0, 1, 2), taken=(0,)),
        "15",
        "0",
        "VRAM-8",
    ),
)

# --- islands ----------------------------------------------------------------------------------------------------------


class IslandNode(NamedTuple):
    """A node with GPUs, the label of its topology, and how many GPUs are in use."""

    topology: str
    number: int
    used: int = 0


A, B, C, D = IslandNode("nvswitch", 8), IslandNode("nvlink", 4), IslandNode("pcie", 2), IslandNode("nvswitch", 8, 2)
SHOWN = {A: "8 free, NVSwitch", B: "4 free, NVLink", C: "2 free, PCIe", D: "6 of 8 free, NVSwitch"}


def island(request: int | None, on: IslandNode, *, slots: tuple[int, ...] = (), **more: Any) -> str:
    """The score of the node. `marks` are further labels of it, `more` is about the pod."""
    labels = {gpu.TOPOLOGY.key: on.topology} if on.topology else {}
    node = a_node("n", resources={GPU: on.number} if on.number else {}, labels=labels | more.pop("marks", {}))
    held = tuple(DeviceShare(f"gpu-{slot}") for slot in (slots or range(on.used)))
    texts = {gpu.DEVICES.key: devices_annotation(held)}
    pods = (a_pod("h", gpu=len(held), node="n", annotations=texts),) if held else ()
    return answer(FRAGMENTATION, a_pod(cpu=1, gpu=request, **more), node, pods=pods)


def _golden(request: int, on: IslandNode, before: str, ours: str, bug: str = "") -> Vector:
    return Vector(f"{request} GPUs, {SHOWN[on]}", lambda: island(request, on), before, ours, bug)


HALVES = {gpu.ISLANDS.key: "0-3_4-7"}
TRAINING = {"workload.kubenexus.io/type": "training"}
ISLAND_VECTORS: tuple[Vector, ...] = (
    _golden(2, A, "0", "0"),
    _golden(2, B, "0", "0"),
    _golden(2, C, "90", "100", "FRAG-1"),
    _golden(2, D, "96", "86", "FRAG-1"),
    _golden(4, A, "0", "0"),
    _golden(4, B, "90", "100", "FRAG-1"),
    _golden(4, C, "0", "0"),
    _golden(4, D, "98", "88", "FRAG-1"),
    _golden(8, A, "90", "100", "FRAG-1"),
    _golden(8, B, "0", "0"),
    _golden(8, C, "0", "0"),
    _golden(8, D, "25", "0", "FRAG-8"),
    *(Vector(f"a pod without GPUs, {SHOWN[on]}", partial(island, None, on), "0", "0") for on in (A, B, C, D)),
    Vector("a pod without GPUs, no GPUs", lambda: island(None, IslandNode("", 0)), "0", "100", "FRAG-6"),
    *(
        Vector(f"3 GPUs, 8 free, {name}", partial(island, 3, IslandNode(name, 8)), said, said)
        for name, said in {"nvswitch": "30", "nvlink": "28"}.items()
    ),
    *(
        Vector(
            f"3 GPUs, 8 free, {name or 'topology not known'}",
            partial(island, 3, IslandNode(name, 8)),
            said,
            "40",
            "FRAG-7",
        )
        for name, said in {"pcie": "25", "": "23"}.items()
    ),
    Vector("2 GPUs for training, 6 of 8 free, NVSwitch", lambda: island(2, D, labels=TRAINING), "30", "86", "FRAG-2"),
    Vector(
        "2 GPUs, 6 of 8 free, label `is-pristine: true`",
        lambda: island(2, D, marks={gpu.PRISTINE.key: "true"}),
        "0",
        "86",
        "FRAG-3",
    ),
    Vector(
        "2 GPUs, 8 free, label `is-pristine: false`",
        lambda: island(2, A, marks={gpu.PRISTINE.key: "false"}),
        "94",
        "84",
        "FRAG-1",
    ),
    Vector(
        "4 GPUs, two islands of four with one taken in each",
        lambda: island(4, IslandNode("nvlink", 8), slots=(0, 4), marks=HALVES),
        "98",
        "0",
        "FRAG-7",
    ),
    Vector(
        "1 GPU of a bronze tenant, reserved for gold",
        lambda: island(1, A, namespace="bronze", marks={tenant.RESERVED_TIER.key: "gold"}),
        REFUSED,
        REFUSED,
    ),
)

# --- links ------------------------------------------------------------------------------------------------------------


def close(number: int, **fields: Any) -> str:
    cards = tuple(Device(name=f"gpu-{i}", resource=GPU, **fields) for i in range(4))
    return answer(TOPOLOGY, a_pod(gpu=number), a_card_node(4), NodeDevices(cards))


LINK_VECTORS: tuple[Vector, ...] = (
    Vector("4 GPUs, joined by NVLink", lambda: close(4, **ISLAND), "100", "100"),
    Vector("4 GPUs, on one switch", lambda: close(4, switch=0), "70", "70"),
    Vector("4 GPUs, on one NUMA node", lambda: close(4, numa=0), "60", "60"),
    Vector("4 GPUs, apart", lambda: close(4), "30", "30"),
    Vector("1 GPU", lambda: close(1, **ISLAND), "50", "50"),
)
SECTIONS: dict[str, tuple[Vector, ...]] = {
    "VRAMScheduler: the memory of a GPU": MEMORY_VECTORS,
    "VRAMScheduler: points for GPUs that are together": TOGETHER_VECTORS,
    "ResourceFragmentationScore": ISLAND_VECTORS,
    "GPUTopology: as designed, the first KubeNexus has no such plugin": LINK_VECTORS,
}
