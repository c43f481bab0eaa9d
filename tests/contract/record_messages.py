"""The numbers of fields in protobuf messages, from the sources that the control plane is built of.

Go clients write in protobuf whatever they know the type of, `kubectl create namespace` too, so the embedded server has
to read it. The API does not publish the numbers; the `.proto` files do. Whether a field is a pointer decides what its
zero means (`replicas: 0` is something, `hostPort: 0` is nothing), and only the Go types say it.
"""

import re
import subprocess
from pathlib import Path
from typing import Any

MODULE = Path(__file__).parents[1] / "e2e" / "controlplane" / "kubernetes"
GROUPS = (
    *("core/v1", "apps/v1", "batch/v1", "policy/v1", "coordination/v1", "events/v1", "scheduling/v1", "storage/v1"),
    *("resource/v1", "discovery/v1", "rbac/v1", "authentication/v1", "authorization/v1", "autoscaling/v1"),
)
META = "pkg/apis/meta/v1"
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.M | re.S)
_FIELD = re.compile(r"^  (optional|repeated|required)? ?(map<string, [.\w]+>|[.\w]+) (\w+) = (\d+);", re.M)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_POINTER = re.compile(r"^\s+\w+\s+\*.*`json:\"(\w+)", re.M)


def messages() -> dict[str, Any]:
    """By message: number -> [name, type, how], where how is `repeated`, `map`, `pointer` or nothing."""
    found: dict[str, Any] = {}
    for group in GROUPS:
        found |= _read(_module("k8s.io/api") / group, f"k8s.io.api.{group.replace('/', '.')}")
    return found | _read(_module("k8s.io/apimachinery") / META, f"k8s.io.apimachinery.{META.replace('/', '.')}")


def _module(name: str) -> Path:
    command = ["go", "list", "-m", "-f", "{{.Dir}}", name]
    return Path(subprocess.run(command, cwd=MODULE, check=True, capture_output=True, text=True).stdout.strip())


def _read(folder: Path, package: str) -> dict[str, Any]:
    pointers = _pointers(folder)
    text = (folder / "generated.proto").read_text(encoding="utf-8")
    return {
        f"{package}.{name}": {
            number: _field(package, how, kind, field, field in pointers.get(name, ()))
            for how, kind, field, number in _FIELD.findall(body)
        }
        for name, body in _MESSAGE.findall(text)
    }


def _pointers(folder: Path) -> dict[str, set[str]]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("types*.go")))
    return {name: set(_POINTER.findall(body)) for name, body in _STRUCT.findall(text)}


def _field(package: str, how: str, kind: str, field: str, pointer: bool) -> list[str]:
    if kind.startswith("map<"):
        how, kind = "map", kind.removeprefix("map<string, ").removesuffix(">")
    elif how != "repeated":
        how = "pointer" if pointer else ""
    if kind.startswith("."):
        kind = kind[1:]
    elif kind[0].isupper():
        kind = f"{package}.{kind}"
    return [field, kind, how]
