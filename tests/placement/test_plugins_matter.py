"""Each of our plugins decides something under the shipped profile, and no two of them cancel each other out."""

import functools
import itertools
from typing import Any, NamedTuple

import pytest

from kubenexus.api.keys import gpu, network, numa, tenant
from kubenexus.plugins import OWN_ORDER
from tests.placement import mixed_cluster
from tests.placement.decisions import Object, decide_in_turn, without
from tests.placement.gpu_cluster import ZONE
from tests.placement.mixed_cluster import (
    A100,
    H100,
    NODE_KINDS,
    POD_KINDS,
    T4,
    VRAM,
    inference,
    job,
    namespaces,
    node,
    owned,
    running,
    service,
    training,
)

SCORING = [plugin.name for plugin, _ in OWN_ORDER if hasattr(plugin, "score")]
PAIRS = list(itertools.combinations(SCORING, 2))
PREEMPTIBLE = {tenant.PREEMPTIBLE.key: "true"}
NUMA = {numa.POLICY.key: "best-effort"}
STANDARD = {gpu.HARDWARE_TIER.key: "standard"}
LARGE_A100 = A100 | {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
PCIE_A100 = A100 | {"nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB", gpu.TOPOLOGY.key: "pcie"}


class Case(NamedTuple):
    """A pod that goes to the node `wanted`, and to `otherwise` if the plugin is off."""

    plugin: str
    pod: Object
    wanted: str
    otherwise: str
    objects: list[Object]


def own(made: Object) -> Object:
    """A pod of the same Deployment as `service`."""
    return owned(made, "ReplicaSet", "web-7c", "apps/v1")


def numa_nodes(name: str, *free: int) -> Object:
    """What a node reports that has NUMA nodes of 16 CPUs, of which so many are free."""
    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [{"name": "cpu", "capacity": "16", "allocatable": "16", "available": str(left)}],
        }
        for number, left in enumerate(free)
    ]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "zones": zones,
        "attributes": [{"name": "topologyManagerPolicy", "value": "best-effort"}],
    }


CASES = [
    Case(
        "WorkloadAwareScoring",
        job(),
        "half",
        "empty",
        [node("empty"), node("half"), running("half", "16", "128Gi")],
    ),
    Case(
        "TopologyScoring",
        service(),
        "b",
        "a-2",
        [
            node("a-1", labels={ZONE: "a"}),
            node("a-2", labels={ZONE: "a"}),
            node("b", labels={ZONE: "b"}),
            own(running("a-1", "2", "4Gi", namespace="bronze")),
            running("b", "4", "32Gi"),
        ],
    ),
    Case(
        "BackfillScoring",
        service(annotations=PREEMPTIBLE),
        "open",
        "kept",
        [node("kept", labels={tenant.RESERVED_TIER.key: "gold"}), node("open"), running("open", "1", "8Gi")],
    ),
    Case(
        "TenantHardwareAffinityScore",
        inference("bronze"),
        "a100",
        "h100",
        [node("a100", 8, A100), node("h100", 8, H100), running("h100", "1", "8Gi", (0, 1, 2))],
    ),
    Case(
        "NetworkFabricScore",
        training("gold", 8),
        "nvswitch",
        "ethernet",
        [
            node("nvswitch", 8, H100),
            node("ethernet", 8, H100 | {network.FABRIC_TYPE.key: "ethernet"}),
            running("ethernet", "4", "32Gi"),
        ],
    ),
    Case(
        "VRAMScheduler",
        inference("silver", 8, annotations={VRAM: "35Gi"}),
        "small",
        "large",
        [node("small", 8, A100), node("large", 8, LARGE_A100 | STANDARD), running("small", "4", "32Gi")],
    ),
    Case(
        "GPUTopology",
        inference("silver", 8),
        "joined",
        "apart",
        [node("joined", 8, A100), node("apart", 8, PCIE_A100), running("joined", "4", "32Gi")],
    ),
    Case(
        "ResourceFragmentationScore",
        inference("gold"),
        "begun",
        "whole",
        [node("whole", 8, H100), node("begun", 8, H100), running("begun", "8", "64Gi", (0, 1, 2))],
    ),
    Case(
        "NUMATopology",
        service(cpu="8", annotations=NUMA),
        "together",
        "apart",
        [
            node("apart"),
            node("together"),
            running("together", "1", "8Gi"),
            numa_nodes("apart", 6, 6),
            numa_nodes("together", 4, 12),
        ],
    ),
]


def winner(case: Case, **profile: Any) -> str:
    (found,) = decide_in_turn([*namespaces(), *case.objects, case.pod], **profile).values()
    return found.node


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.plugin)
def test_switching_a_plugin_off_changes_a_placement(case: Case) -> None:
    assert (winner(case), winner(case, profile=without(case.plugin))) == (case.wanted, case.otherwise)


def test_there_is_a_case_for_each_plugin_that_scores() -> None:
    assert sorted(case.plugin for case in CASES) == sorted(SCORING)


# ---- pairs ---------------------------------------------------------------------------------------------------------

Points = dict[str, tuple[int, ...]]  # by plugin: the weighted score of each feasible node


def busy_cluster() -> list[Object]:
    """The mixed cluster in two zones with pods of the same workloads, a reserved node and nodes in use."""
    objects = namespaces()
    for number, kind in enumerate(NODE_KINDS):
        labels = kind.node["metadata"]["labels"] | {ZONE: "ab"[number % 2], network.RACK.key: f"r{number % 3}"}
        if number % 3 == 2:
            labels[tenant.RESERVED_TIER.key] = "silver"
        objects += [kind.node | {"metadata": {"name": kind.name, "labels": labels}}, *kind.running]
        objects.append(numa_nodes(kind.name, 16 - 3 * number, 16 - number))
    large = {ZONE: "a", network.RACK.key: "r0"}
    objects += [
        node("a100-80", 8, LARGE_A100 | STANDARD | large),
        running("a100-80", "24", "32Gi", (0, 1)),
        node("apart", 8, PCIE_A100 | {ZONE: "b"}),
        running("apart", "4", "128Gi", (5,)),
        own(running("a100", "2", "4Gi", name="web-1", namespace="bronze")),
        owned(running("a100-80", "2", "4Gi", name="chat-1"), "ReplicaSet", "chat-5f", "apps/v1"),
    ]
    return objects


def zoo() -> dict[str, Object]:
    """Pods by text: those of the page, and some that all plugins have points for."""
    several = {VRAM: "12Gi"}
    pods = {each.text: each.pod for each in POD_KINDS}
    for tier in mixed_cluster.TIERS:
        pods |= {
            f"{tier} preemptible service": service(tier, annotations=PREEMPTIBLE | NUMA),
            f"{tier} preemptible job": job(tier, annotations=PREEMPTIBLE | NUMA),
            f"{tier} preemptible job, 2 GPUs": job(tier, gpus=2, annotations=PREEMPTIBLE | several | NUMA),
            f"{tier} preemptible model server": inference(tier, 2, annotations=PREEMPTIBLE | several | NUMA),
            f"{tier} model server, 3 GPUs": inference(tier, 3, annotations={VRAM: "30Gi"} | NUMA),
            f"{tier} training": training(tier, 2, annotations={VRAM: "36Gi"} | NUMA),
        }
    return pods


@functools.lru_cache(maxsize=1)
def all_points() -> dict[str, Points]:
    """By text of the pod: the weighted scores of our plugins."""
    found = {}
    for text, pod in zoo().items():
        (placed,) = decide_in_turn([*busy_cluster(), pod]).values()
        columns: dict[str, list[int]] = {name: [] for name in SCORING}
        for rating in placed.ratings:
            for score in rating.scores:
                if score.plugin in columns:
                    columns[score.plugin].append(score.weight * score.normalized)
        found[text] = {name: tuple(column) for name, column in columns.items()}
    return found


def both_speak(left: str, right: str) -> list[tuple[str, tuple[int, ...]]]:
    """The pods for which both have different points on different nodes, and the sums of these points."""
    return [
        (text, tuple(map(sum, zip(points[left], points[right], strict=True))))
        for text, points in all_points().items()
        if len(set(points[left])) > 1 and len(set(points[right])) > 1
    ]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_the_points_of_two_plugins_do_not_add_up_to_a_constant(left: str, right: str) -> None:
    found = both_speak(left, right)
    assert found, "no pod of the zoo has points of both"
    assert [text for text, sums in found if len(set(sums)) == 1] == []


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_of_two_nodes_that_both_plugins_tell_apart_one_is_better_in_sum(left: str, right: str) -> None:
    told_apart = [
        (points[left][i] + points[right][i]) - (points[left][j] + points[right][j])
        for points in all_points().values()
        for i, j in itertools.combinations(range(len(points[left])), 2)
        if points[left][i] != points[left][j] and points[right][i] != points[right][j]
    ]
    assert any(told_apart), f"{len(told_apart)} pairs of nodes"


@pytest.mark.parametrize("gpus", [0, 8], ids=["without GPUs", "with GPUs"])
@pytest.mark.parametrize("annotations", [{}, PREEMPTIBLE], ids=["ordinary", "preemptible"])
@pytest.mark.parametrize(("made", "packs"), [(job, True), (service, False)], ids=["batch", "service"])
def test_x1_backfill_never_opposes_the_strategy_of_the_workload(
    made: Any, packs: bool, annotations: dict[str, str], gpus: int
) -> None:
    """The first KubeNexus added u to 100 - u: batch pods were placed as if neither plugin were there."""
    used = {f"n{percent}": percent for percent in (0, 10, 25, 50, 75, 90)}
    objects = [node(name, gpus, T4 if gpus else {}, cpu="100", memory="100Gi") for name in used]
    objects += [running(name, str(percent), f"{percent}Gi") for name, percent in used.items() if percent]
    (placed,) = decide_in_turn([*namespaces(), *objects, made(annotations=annotations)]).values()
    points = {
        used[rating.node]: {score.plugin: score.weight * score.normalized for score in rating.scores}
        for rating in placed.ratings
    }
    best_first = sorted(points, reverse=packs)
    strategy = [points[percent]["WorkloadAwareScoring"] for percent in best_first]
    backfill = [points[percent]["BackfillScoring"] for percent in best_first]
    assert strategy == sorted(set(strategy), reverse=True), "it prefers each node to the next"
    assert backfill == sorted(backfill, reverse=True), "it prefers none that the other likes less"
    assert len(set(backfill)) == (len(used) if annotations else 1), "it speaks for pods that fill gaps alone"
    assert placed.node == ("n90" if packs else "n0")
