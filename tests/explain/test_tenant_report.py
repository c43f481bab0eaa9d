"""`kubenexus top tenants`: what each tenant uses, from a dump."""

import json
import os
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kubenexus.base.timestamps import parse_timestamp
from kubenexus.cli import main
from tests.explain.device_dump import DEVICES, FRACTION, H100, gpu_node, gpu_pod

NOW = "2026-03-01T12:00:00Z"


def namespace(space: str, **labels: str) -> Any:
    named = {f"tenant.kubenexus.io/{key}": text for key, text in labels.items()}
    return {"kind": "Namespace", "metadata": {"name": space, "labels": named}}


def running(pod: Any, since: str = "", bound: str = "", space: str = "ml", phase: str = "Running") -> Any:
    pod["metadata"]["namespace"] = space
    pod["status"] = {"phase": phase} | ({"startTime": since} if since else {})
    if bound:
        pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}]
    return pod


def top(tmp_path: Path, items: list[Any], *options: str) -> str:
    return invoke(tmp_path, items, *options).stdout


def invoke(tmp_path: Path, items: list[Any], *options: str) -> Result:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    made = parse_timestamp(NOW, 0.0)
    os.utime(dump, (made, made))
    result = CliRunner().invoke(main, ["top", "tenants", "--cluster", str(dump), *options])
    assert result.exit_code == 0, result.output
    return result


ITEMS = [
    gpu_node("h", labels={**H100, "hardware.kubenexus.io/cost-hour": "16.00"}),
    gpu_node("t", 4, labels={"nvidia.com/gpu.product": "Tesla-T4", "gpu.kubenexus.io/shared": "true"}),
    namespace("ml", tier="gold", name="research"),
    namespace("web"),
    running(gpu_pod("a", 4, "h"), since="2026-03-01T10:00:00Z"),
    running(gpu_pod("b", 2, "h"), since="2026-03-01T11:30:00Z", space="web"),
    running(
        gpu_pod("c", 0, "t", {FRACTION: "0.5", DEVICES: '[{"device":"gpu-0","share":500}]'}),
        bound="2026-03-01T11:00:00Z",
        space="web",
    ),
    running(gpu_pod("ended", 8, "h"), since="2026-03-01T01:00:00Z", phase="Succeeded"),
    running(gpu_pod("waits", 8), phase="Pending"),
    running(gpu_pod("plain", 0, "h"), since="2026-03-01T01:00:00Z"),
]


def test_the_table(tmp_path: Path) -> None:
    lines = [" ".join(line.split()) for line in top(tmp_path, ITEMS).splitlines()]
    assert lines == [
        "TENANT TIER PODS GPUS PREMIUM STANDARD ECONOMY UNKNOWN GPU-HOURS PREMIUM BY LOW TIER COST/H",
        "research gold 1 4 4 - - - 8.0 - 8.00",
        "web bronze 2 2.5 2 - 0.5 - 1.5 1.0 4.00",
        "",
        "GPU-HOURS are those of the pods that run now, each since its start.",
    ]


def test_a_dump_without_a_namespace_has_a_warning(tmp_path: Path) -> None:
    without = [item for item in ITEMS if item["metadata"]["name"] != "ml"]
    assert "does not have the namespace ml: tiers may be wrong" in invoke(tmp_path, without).stderr


def test_the_same_as_json(tmp_path: Path) -> None:
    found = json.loads(top(tmp_path, ITEMS, "-o", "json"))["tenants"]
    assert found[1] == {
        "tenant": "web",
        "tier": "bronze",
        "pods": 2,
        "gpus": 2.5,
        "hardware": {"premium": 2.0, "standard": 0.0, "economy": 0.5, "unknown": 0.0},
        "gpu_hours": 1.5,
        "premium_hours_by_low_tier": 1.0,
        "cost_per_hour": 4.0,
    }


def test_a_cluster_without_gpus(tmp_path: Path) -> None:
    assert top(tmp_path, [gpu_node("n", 0), running(gpu_pod("a", 0, "n"))]) == "no pods with GPUs\n"


def test_without_prices_the_cost_is_not_zero_but_unknown(tmp_path: Path) -> None:
    items = [gpu_node("n", 8), running(gpu_pod("a", 1, "n"))]
    table, data = top(tmp_path, items), json.loads(top(tmp_path, items, "-o", "json"))
    assert table.splitlines()[1].split() == ["ml", "bronze", "1", "1", "-", "-", "-", "1", "0.0", "-", "-"]
    assert data["tenants"][0]["cost_per_hour"] is None
