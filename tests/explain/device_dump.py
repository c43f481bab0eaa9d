"""Objects of a dump with GPUs, as kubectl prints them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kubenexus.cli import main

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
DEVICES = "scheduling.kubenexus.io/devices"
FRACTION = "scheduling.kubenexus.io/gpu-fraction"
Annotations = Mapping[str, str] | None
NVLINK = "gpu.kubenexus.io/prefer-nvlink"


def gpu_node(name: str, gpus: int = 8, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}},
    }


def gpu_pod(
    name: str, gpus: int = 0, node: str = "", annotations: Annotations = None, labels: Annotations = None
) -> Any:
    amounts = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "c", "resources": {"limits": amounts, "requests": amounts}}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": name,
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {"nodeName": node, "schedulerName": "kubenexus-scheduler", "containers": [container]},
    }


def cards(*names: str) -> dict[str, str]:
    """The annotation of a pod that holds whole cards."""
    return {DEVICES: json.dumps([{"device": name} for name in names])}


def run_on(tmp_path: Path, items: list[Any], command: str, *options: str) -> Result:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    return CliRunner().invoke(main, [command, "--cluster", str(dump), *options])
