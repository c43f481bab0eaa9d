"""`kubenexus explain` for pods with GPUs: what they need, which nodes come closest, and the cards of placed ones."""

from pathlib import Path
from typing import Any

import pytest

from tests.explain.device_dump import DEVICES, FRACTION, H100, NVLINK, cards, gpu_node, gpu_pod, run_on

JOINED = {NVLINK: "required"}
HALVES = {"gpu.kubenexus.io/islands": "0-3;4-7"}
GANG = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "4"}
MEMORY = "scheduling.kubenexus.io/gpu-memory"
SHARED = {"gpu.kubenexus.io/shared": "true"}


def halved(name: str, labels: dict[str, str] = H100) -> dict[str, Any]:
    node = gpu_node(name, 8, labels)
    node["metadata"]["annotations"] = HALVES
    return node


def without_room(name: str) -> dict[str, Any]:
    node = gpu_node(name, 8, H100)
    node["status"]["allocatable"]["pods"] = "0"
    return node


def explained(tmp_path: Path, items: list[Any], pod: str = "p") -> list[str]:
    return run_on(tmp_path, items, "explain", "--pod", f"ml/{pod}").output.splitlines()


@pytest.mark.parametrize(
    ("items", "lines"),
    [
        pytest.param(
            [halved("n7"), gpu_pod("a", 3, "n7", cards("gpu-0", "gpu-1", "gpu-4")), gpu_pod("p", 4, "", JOINED)],
            ["NEEDS    4 free GPUs joined by NVLink", "DEVICES  n7: 8 GPUs, 5 free, joined 3 + 2"],
            id="enough are free, but not in one island",
        ),
        pytest.param(
            [halved("n7"), gpu_pod("a", 3, "n7"), gpu_pod("p", 4, "", JOINED)],
            ["DEVICES  n7: 8 GPUs, 5 free, joined at most 4 + 4, 3 in use on cards not known"],
            id="pods without names may hold any card",
        ),
        pytest.param(
            [gpu_node("n1", 2, H100), gpu_pod("p", 3)],
            ["NEEDS    3 free GPUs", "DEVICES  n1: 2 GPUs, 2 free"],
            id="a plain number",
        ),
        pytest.param(
            [gpu_node("n1", 2, H100), gpu_pod("p", 1, "", {"scheduling.kubenexus.io/vram-request": "141Gi"})],
            ["NEEDS    1 free GPU with 141Gi of memory", "DEVICES  n1: 2 GPUs, none suitable"],
            id="no card is large enough",
        ),
        pytest.param(
            [gpu_node("n1", 2, H100), gpu_pod("p", 2, "", {"gpu.kubenexus.io/type": "nvidia-a100"})],
            ["NEEDS    2 free GPUs of the type a100 nvidia", "DEVICES  n1: 2 GPUs, none suitable"],
            id="another type",
        ),
        pytest.param(
            [gpu_node("a", 2, H100), gpu_node("b", 1, {**H100, **SHARED}), gpu_pod("p", 0, "", {MEMORY: "90Gi"})],
            [
                "NEEDS    90Gi of a shared GPU",
                "DEVICES  b: 1 GPU, at most 100% and 79.1Gi of one free",
                "DEVICES  a: 2 GPUs, not shared",
            ],
            id="a part that no card has, nodes that share before others",
        ),
        pytest.param(
            [gpu_node("n1", 2, {**H100, "gpu.kubenexus.io/health-ecc": "bad"}), gpu_pod("p", 1)],
            ["DEVICES  n1: 2 GPUs, 2 unhealthy, none suitable"],
            id="unhealthy cards",
        ),
        pytest.param(
            [gpu_node("n1", 0), gpu_pod("p", 1)], ["DEVICES  no node has any of them"], id="a cluster without GPUs"
        ),
        pytest.param(
            [{**gpu_node("n1", 2, H100), "spec": {"unschedulable": True}}, gpu_pod("p", 1)],
            ["DEVICES  n1: 2 GPUs, 2 free; these would do; refused: node(s) were unschedulable"],
            id="devices would do, the node is refused for something else",
        ),
        pytest.param(
            [
                {**gpu_node("n1", 4, H100), "spec": {"unschedulable": True}},
                {**gpu_node("n2", 4, H100), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
                gpu_node("n3", 2, H100),
                gpu_pod("p", 4),
            ],
            ["NEEDS    4 free GPUs", "DEVICES  n3: 2 GPUs, 2 free"],
            id="nodes that are refused for something else are left out beside others",
        ),
        pytest.param(
            [without_room("n1"), gpu_node("n2", 2, H100), gpu_pod("p", 4)],
            ["DEVICES  n1: 8 GPUs, 8 free; these would do", "DEVICES  n2: 2 GPUs, 2 free"],
            id="a node that lacks something else now is not: it may take the pod later",
        ),
    ],
)
def test_a_pod_that_waits(tmp_path: Path, items: list[Any], lines: list[str]) -> None:
    found = explained(tmp_path, items)
    assert [line for line in found if line.startswith(("NEEDS", "DEVICES"))][-len(lines) :] == lines


def test_at_most_five_nodes_the_nearest_first(tmp_path: Path) -> None:
    nodes = [gpu_node(f"n{i}", i, H100) for i in range(1, 9)]
    lines = [line for line in explained(tmp_path, [*nodes, gpu_pod("p", 16)]) if line.startswith("DEVICES")]
    assert [line.split()[1] for line in lines] == ["n8:", "n7:", "n6:", "n5:", "n4:"]


def test_a_placed_pod_has_its_cards(tmp_path: Path) -> None:
    items = [gpu_node("n1", 4, H100), gpu_pod("a", 2, "n1", cards("gpu-0", "gpu-1")), gpu_pod("p", 2)]
    assert "CARDS    gpu-2, gpu-3 (island 0, nvswitch); a plan: the kubelet's device plugin picks" in explained(
        tmp_path, items
    )
    assert "HAS      gpu-0, gpu-1 (island 0, nvswitch); a plan: the kubelet's device plugin picks" in explained(
        tmp_path, items, "a"
    )


def test_a_part_is_no_plan(tmp_path: Path) -> None:
    half = {FRACTION: "0.5"}
    held = half | {DEVICES: '[{"device":"gpu-0","share":500,"memory":"20Gi"}]'}
    items = [gpu_node("n1", 2, {**H100, **SHARED}), gpu_pod("a", 0, "n1", held), gpu_pod("p", 0, "", half)]
    assert "CARDS    gpu-0 50% 39.6Gi" in explained(tmp_path, items)
    assert "HAS      gpu-0 50% 20Gi" in explained(tmp_path, items, "a")


def test_a_gang_that_waits_says_what_each_member_needs(tmp_path: Path) -> None:
    gang = [gpu_pod(f"g{i}", 4, "", JOINED, labels=GANG) for i in range(4)]
    found = explained(tmp_path, [halved("n1"), *gang], "g1")
    assert (
        "WHY      0/1 nodes are available: 2 of at least 4 members fit in the whole cluster; 2 more need "
        "8 nvidia.com/gpu (each member needs 4 free GPUs joined by NVLink); more than the nodes there are would hold "
        "if they were empty." in found
    )
    assert "MEMBERS  each member needs 4 free GPUs joined by NVLink" in found


def test_a_gang_with_plain_numbers_keeps_its_sentence(tmp_path: Path) -> None:
    gang = [gpu_pod(f"g{i}", 4, "", labels=GANG) for i in range(4)]
    found = explained(tmp_path, [halved("n1"), *gang], "g1")
    assert any(line.startswith("WHY") and "more need 8 nvidia.com/gpu; more than" in line for line in found)
    assert not any(line.startswith("MEMBERS") for line in found)


def test_members_of_several_kinds(tmp_path: Path) -> None:
    gang = [gpu_pod(f"g{i}", 4, "", JOINED if i else None, labels=GANG) for i in range(4)]
    found = explained(tmp_path, [halved("n1"), *gang], "g1")
    assert "MEMBERS  members need 4 free GPUs joined by NVLink" in found


def test_members_of_a_gang_that_starts_have_their_cards(tmp_path: Path) -> None:
    gang = [gpu_pod(f"g{i}", 4, "", JOINED, labels=GANG) for i in range(4)]
    found = explained(tmp_path, [halved("n1"), halved("n2"), *gang], "g1")
    shown = sorted(" ".join(line.split()[1:7]) for line in found if line.startswith("ml/g") and "gpu-" in line)
    assert shown == [
        f"{node} {', '.join(f'gpu-{i}' for i in range(first, first + 4))} (island"
        for node in ("n1", "n2")
        for first in (0, 4)
    ]


@pytest.mark.parametrize(
    ("gpus", "annotations", "refused"),
    [
        pytest.param(
            8, {"gpu.kubenexus.io/type": "a100"}, "have enough GPUs of the requested type", id="a type that no node has"
        ),
        pytest.param(5, JOINED, "have 5 GPUs joined by NVLink", id="more joined GPUs than any island has"),
        pytest.param(
            8,
            {"scheduling.kubenexus.io/vram-request": "141Gi"},
            "have enough GPUs with the requested memory",
            id="more memory than any card has",
        ),
        pytest.param(0, {FRACTION: "0.5"}, "share their GPUs", id="a part where no node shares"),
    ],
)
def test_nothing_is_reserved_for_a_gang_that_no_node_could_ever_hold(
    tmp_path: Path, gpus: int, annotations: dict[str, str], refused: str
) -> None:
    gang = [gpu_pod(f"g{i}", gpus, "", annotations, labels=GANG) for i in range(4)]
    late = gpu_pod("late", 2)
    for number, pod in enumerate((*gang, late)):
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{number}Z"
    items = [halved("n1"), halved("n2"), *gang, late]
    found = explained(tmp_path, items, "g1")
    why = f"would hold if they were empty; 2 node(s) didn't {refused}."
    assert any(line.startswith("WHY") and line.endswith(why) for line in found)
    (by,) = [line for line in found if line.startswith("BY")]
    assert "GangTooLarge" in by
    assert len(by.split(",")) > 1, "an event about devices tries it again"
    assert any(line.startswith("NODE     n") for line in explained(tmp_path, items, "late"))
