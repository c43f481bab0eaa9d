"""Workloads as texts: a file in a folder, played with one seed."""

from pathlib import Path
from typing import Any

import yaml

from kubenexus.base.clock import VirtualClock
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.perf import files, workload_run
from kubenexus.sim.perf.workload_run import Result, WorkloadFilter
from kubenexus.sim.virtual.decisions import Write

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}


def a_case(folder: Path, *ops: dict[str, Any], **more: Any) -> Path:
    """A file with one case of one workload; `params` are the workload's."""
    workload = {"name": "w", "params": more.pop("params", {}), "labels": more.pop("labels", [])}
    case = {"name": "Case", "workloadTemplate": list(ops), "workloads": [workload], **more}
    file = folder / files.NAME
    file.write_text(yaml.safe_dump([case]), encoding="utf-8")
    return file


def a_template(folder: Path, name: str, item: dict[str, Any] | str) -> str:
    text = item if isinstance(item, str) else yaml.safe_dump(item)
    (folder / name).write_text(text, encoding="utf-8")
    return name


def a_pod(**spec: Any) -> dict[str, Any]:
    return {**POD, "spec": {**POD["spec"], **spec}}


def asking(cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return a_pod(containers=[container], **spec)


def play(file: Path, seed: int = 0, write: Write | None = None) -> Result:
    (only,) = WorkloadFilter().chosen(files.read(file))
    return workload_run.run(only, BUILT_IN, seed=seed, stopwatch=VirtualClock(), write=write)
