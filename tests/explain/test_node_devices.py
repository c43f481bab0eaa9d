"""`kubenexus devices`: each card with its facts, their sources and the pods that hold it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.explain.device_dump import DEVICES, FRACTION, H100, cards, gpu_node, gpu_pod, run_on

HALF = '[{"device":"gpu-0","share":500,"memory":"10Gi"}]'
SLICE = {
    "kind": "ResourceSlice",
    "apiVersion": "resource.k8s.io/v1",
    "metadata": {"name": "n1-gpus"},
    "spec": {
        "driver": "gpu.nvidia.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": f"gpu-{i}",
                "attributes": {"productName": {"string": "NVIDIA L4"}},
                "capacity": {"memory": {"value": "24Gi"}},
            }
            for i in range(2)
        ],
    },
}
ZONES = {
    "kind": "NodeResourceTopology",
    "apiVersion": "topology.node.k8s.io/v1alpha2",
    "metadata": {"name": "n1"},
    "zones": [
        {"name": f"node-{i}", "type": "Node", "resources": [{"name": "nvidia.com/gpu", "capacity": "1"}]}
        for i in range(2)
    ],
}


def lines(tmp_path: Path, items: list[Any], *options: str) -> list[str]:
    result = run_on(tmp_path, items, "devices", *options)
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.output.splitlines()]


@pytest.mark.parametrize(
    ("items", "line"),
    [
        pytest.param(
            [gpu_node("n1", 1, H100)],
            "n1 premium (model) gpu-0 (allocatable) NVIDIA-H100-80GB-HBM3 (gfd) 79.6Gi (gfd) - - free",
            id="each fact has its source beside it, and an unknown one is a dash",
        ),
        pytest.param(
            [gpu_node("n1", 2, H100)],
            "n1 premium (model) gpu-1 (allocatable) NVIDIA-H100-80GB-HBM3 (gfd) 79.6Gi (gfd) - 0 nvswitch (model) free",
            id="cards that are joined have an island and a link",
        ),
        pytest.param(
            [gpu_node("n1", 2), SLICE, ZONES],
            "n1 economy (model) gpu-1 (dra) NVIDIA L4 (dra) 24Gi (dra) 1 (nrt) - free",
            id="ResourceSlices and NodeResourceTopologies are read",
        ),
        pytest.param(
            [gpu_node("n1", 1, {**H100, "hardware.kubenexus.io/tier": "silver"})],
            "n1 standard (label) gpu-0 (allocatable) NVIDIA-H100-80GB-HBM3 (gfd) 79.6Gi (gfd) - - free",
            id="the label of the node decides its tier",
        ),
        pytest.param(
            [gpu_node("n1", 1, {"hardware.kubenexus.io/tier": "best"})],
            "n1 - gpu-0 (allocatable) - - - - free",
            id="a tier that is neither stated nor known from the model",
        ),
        pytest.param(
            [gpu_node("n1", 1, {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"})],
            "n1 economy (model) gpu-0 (allocatable) nvidia-tesla-t4 (cloud) 16Gi (model) - - free",
            id="a model from a label of the cloud",
        ),
        pytest.param(
            [gpu_node("n1", 1), gpu_pod("a", 1, "n1", cards("gpu-0"))],
            "n1 - gpu-0 (allocatable) - - - - held by ml/a",
            id="a pod with a whole card",
        ),
        pytest.param(
            [
                gpu_node("n1", 1, {"gpu.kubenexus.io/shared": "true"}),
                gpu_pod("a", 0, "n1", {DEVICES: HALF, FRACTION: "0.5"}),
            ],
            "n1 - gpu-0 (allocatable) - - - - held by ml/a 50%; 50% free",
            id="a pod with half a card",
        ),
        pytest.param(
            [gpu_node("n1", 1, {"gpu.kubenexus.io/health-ecc": "failed"})],
            "n1 - gpu-0 (allocatable) - - - - unhealthy (manual)",
            id="an unhealthy card",
        ),
        pytest.param(
            [gpu_node("n1", 4), gpu_pod("a", 3, "n1")],
            "n1: 3 nvidia.com/gpu held by pods without names, on cards not known",
            id="pods without names are counted",
        ),
        pytest.param(
            [gpu_node("n1", 4), gpu_pod("a", 0, "n1", cards("gpu-0"))],
            "n1 - gpu-0 (allocatable) - - - - free",
            id="a pod that requests no GPU holds none, whatever its annotation names",
        ),
        pytest.param(
            [gpu_node("n1", 3, {**H100, "nvidia.com/gpu.count": "4"})],
            "n1: the kubelet offers 3 nvidia.com/gpu, the healthy cards are 4",
            id="fewer cards offered than there are",
        ),
        pytest.param(
            [gpu_node("n1", 4, {"nvidia.com/gpu.replicas": "2"})],
            "n1: each card is offered 2 times as nvidia.com/gpu",
            id="time slicing",
        ),
        pytest.param(
            [gpu_node("n1", 1, {"gpu.kubenexus.io/vram": "junk"})],
            "n1: warning: label gpu.kubenexus.io/vram: 'junk' is not a quantity: a number with a suffix such as m, k, "
            "M, Ki, Mi or e3",
            id="a label that cannot be read",
        ),
        pytest.param([gpu_node("n1", 0, {"kubernetes.io/os": "linux"})], "no devices", id="a cluster without devices"),
    ],
)
def test_a_line_of_the_table(tmp_path: Path, items: list[Any], line: str) -> None:
    assert line in lines(tmp_path, items)


def test_where_the_device_plugin_picks_the_table_says_that_names_are_a_plan(tmp_path: Path) -> None:
    assert lines(tmp_path, [gpu_node("n1", 1)])[-1].startswith("The kubelet's device plugin picks the card")
    unoffered = lines(tmp_path, [gpu_node("n1", 0), SLICE])
    assert "n1: 2 cards are in no resource of the kubelet; pods that claim them are not shown" in unoffered
    assert not any("device plugin" in line for line in unoffered)


def test_one_node_alone(tmp_path: Path) -> None:
    items = [gpu_node("n1", 1), gpu_node("n2", 1)]
    assert [line.split()[0] for line in lines(tmp_path, items, "--node", "n2")[1:2]] == ["n2"]
    assert not any(line.startswith("n1") for line in lines(tmp_path, items, "--node", "n2"))
    missing = run_on(tmp_path, items, "devices", "--node", "n3")
    assert (missing.exit_code, "no node n3 in" in missing.output) == (1, True)


def test_json_has_all_fields_and_their_sources(tmp_path: Path) -> None:
    items = [gpu_node("n1", 2, {**H100, "gpu.kubenexus.io/shared": "true"}), gpu_pod("b", 1, "n1")]
    items.append(gpu_pod("a", 0, "n1", {DEVICES: HALF, FRACTION: "0.5"}))
    (node,) = json.loads(run_on(tmp_path, items, "devices", "-o", "json").output)["nodes"]
    assert (node["node"], node["shared"], node["warnings"]) == ("n1", True, [])
    assert node["resources"] == [{"resource": "nvidia.com/gpu", "offered": 2, "used": 1, "without_names": 1}]
    assert node["hardware"] == {"tier": "premium", "source": "model"}
    first = node["devices"][0]
    assert first["held_by"] == [{"pod": "ml/a", "share": 500, "memory": 10 << 30}]
    assert first["free"] == 500
    assert first["free_memory"] == (81559 << 20) - (512 << 20) - (10 << 30)
    assert (first["device"]["numa"], first["device"]["healthy"], first["device"]["island"]) == (None, True, 0)
    assert first["device"]["sources"]["memory"] == "gfd"
