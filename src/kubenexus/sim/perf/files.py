"""Reads cases from files. Errors name the file, the case and the operation."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.perf.ops import OPCODES, AnyOp, Barrier, Churn

NAME = "performance-config.yaml"
_STAGES = ("Scheduled", "Attempted")
_MODES = ("create", "recreate")


class InvalidWorkload(KubeNexusError):
    """A file that cannot be run: the location, and what was expected."""


class PerfWorkload(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One size of a case. Thresholds are those of kube-scheduler on its machines; time here is virtual."""

    name: str
    params: dict[str, Any] = {}
    labels: list[str] = []
    feature_gates: dict[str, bool] = {}
    threshold: Any = None
    threshold_metric_selector: Any = None


class Case(msgspec.Struct, frozen=True):
    """A list of operations and the sizes that it is run with. `file` is its source; paths in it are relative to it."""

    file: Path
    name: str
    ops: tuple[AnyOp, ...]
    workloads: tuple[PerfWorkload, ...]
    labels: tuple[str, ...] = ()
    feature_gates: dict[str, bool] = {}
    scheduler_config: Path | None = None
    default_pod: str = ""

    def path(self, named: str) -> Path:
        return (self.file.parent / named).resolve()


class _Written(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: str
    workload_template: list[dict[str, Any]]
    workloads: list[PerfWorkload]
    labels: list[str] = []
    feature_gates: dict[str, bool] = {}
    metrics_collector_config: Any = None
    scheduler_config_path: str = ""
    default_pod_template_path: str = ""
    default_threshold_metric_selector: Any = None


def find(paths: Iterable[Path]) -> list[Path]:
    """Returns the files at these paths; a folder stands for every performance-config.yaml in it. Raises
    InvalidWorkload."""
    files: list[Path] = []
    for path in paths:
        found = sorted(path.rglob(NAME)) if path.is_dir() else [path]
        if not path.exists():
            raise InvalidWorkload(f"{path}: no such file or folder")
        if not found:
            raise InvalidWorkload(f"{path}: no {NAME} in this folder")
        files.extend(file for file in found if file not in files)
    return files


def read(file: Path) -> list[Case]:
    """Returns all cases of a file. Raises InvalidWorkload."""
    try:
        content = yaml.load(file.read_bytes(), yaml.CSafeLoader)
    except OSError as error:
        raise InvalidWorkload(f"{file}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise InvalidWorkload(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, list):
        raise InvalidWorkload(f"{file}: expected a list of test cases, found {_kind(content)}")
    return [_case(file, index, each) for index, each in enumerate(content)]


def _case(file: Path, index: int, content: Any) -> Case:
    where = f"{file}: case {content['name'] if isinstance(content, dict) and 'name' in content else index}"
    written = _as(_Written, content, where)
    names = [each.name for each in written.workloads]
    for name in names:
        if names.count(name) > 1:
            raise InvalidWorkload(f"{where}: two workloads are named {name}")
    config = written.scheduler_config_path
    return Case(
        file=file,
        name=written.name,
        ops=tuple(_ops(where, written.workload_template)),
        workloads=tuple(written.workloads),
        labels=tuple(written.labels),
        feature_gates=written.feature_gates,
        scheduler_config=(file.parent / config).resolve() if config else None,
        default_pod=written.default_pod_template_path,
    )


def _ops(where: str, contents: list[dict[str, Any]]) -> Iterator[AnyOp]:
    for index, content in enumerate(contents):
        at = f"{where}: workloadTemplate[{index}]"
        code = content.get("opcode")
        if code not in OPCODES:
            said = f"unknown opcode {code!r}" if code is not None else "no opcode"
            raise InvalidWorkload(f"{at}: {said}; expected one of {', '.join(OPCODES)}")
        op = _as(OPCODES[code], content, at)
        if isinstance(op, Barrier) and op.stage_requirement not in _STAGES:
            raise InvalidWorkload(
                f"{at}: stageRequirement {op.stage_requirement!r}; expected one of {', '.join(_STAGES)}"
            )
        if isinstance(op, Churn):
            _check_churn(op, at)
        yield op


def _check_churn(op: Churn, at: str) -> None:
    if op.mode not in _MODES:
        raise InvalidWorkload(f"{at}: mode {op.mode!r}; expected one of {', '.join(_MODES)}")
    if op.number < 0 or (op.mode == "recreate" and not op.number):
        raise InvalidWorkload(f"{at}: number {op.number}; expected at least {int(op.mode == 'recreate')}")


def _as(wanted: Any, content: Any, where: str) -> Any:
    try:
        return msgspec.convert(content, wanted)
    except msgspec.ValidationError as error:
        raise InvalidWorkload(f"{where}: {str(error).replace('`', '')}") from None


def _kind(content: Any) -> str:
    return "nothing" if content is None else type(content).__name__
