"""`make controlplane`: builds the Kubernetes that the end-to-end tests run against, once for each set of pins.

The programs come from Go's module proxy in the versions that `kubernetes/go.mod` and `etcd/go.mod` pin, and go into a
folder of the user's cache that is named after the pins. Whoever has such a folder already, as envtest makes them,
names it in `KUBEBUILDER_ASSETS`, and nothing is built. Beside the programs lie kube-scheduler's own performance
workloads, a copy of `test/integration/scheduler_perf` of the same sources. Needs only what Python brings along.

    python -m tests.e2e.controlplane.build                # provides both, and prints where they are
    python -m tests.e2e.controlplane.build --workloads    # provides the workloads alone, and prints only their folder
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
PROGRAMS = (*KUBERNETES, "etcd")
# Both packages carry the version: one for what a server says of itself, one for what a client calls itself.
STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
MODULE = "k8s.io/kubernetes"
WORKLOADS = "scheduler_perf"


class CannotBuild(Exception):
    """One line for the person who wanted a control plane."""


def assets(env: Mapping[str, str] = os.environ) -> Path:
    """The folder that has the programs, or will have them once they are built."""
    given = env.get("KUBEBUILDER_ASSETS")
    return Path(given) if given else _cached(env)


def missing(folder: Path) -> list[str]:
    """The programs that are not in the folder."""
    return [program for program in PROGRAMS if not os.access(folder / program, os.X_OK)]


def workloads(env: Mapping[str, str] = os.environ) -> Path:
    """The folder that has kube-scheduler's performance workloads, or will have them: `SCHEDULER_PERF` if it is set.

    A folder that is named in `KUBEBUILDER_ASSETS` may have them; if not, they go into the cache: it is not ours.
    """
    given, beside = env.get("SCHEDULER_PERF"), assets(env) / WORKLOADS
    if given:
        return Path(given)
    return beside if beside.is_dir() else _cached(env) / WORKLOADS


def provide(env: Mapping[str, str] = os.environ) -> Path:
    """Builds what is missing; does nothing if nothing is. Raises CannotBuild."""
    folder = assets(env)
    if missing(folder):
        if env.get("KUBEBUILDER_ASSETS"):
            raise CannotBuild(f"KUBEBUILDER_ASSETS={folder} lacks {', '.join(missing(folder))}")
        check_go("building the control plane needs Go (or name a folder in KUBEBUILDER_ASSETS)")
        with one_at_a_time(folder):
            if missing(folder):
                _build(folder)
    return folder


def provide_workloads(env: Mapping[str, str] = os.environ) -> Path:
    """Copies kube-scheduler's workloads out of the Go module, if they are not there. Raises CannotBuild."""
    folder = workloads(env)
    if not folder.is_dir():
        if env.get("SCHEDULER_PERF"):
            raise CannotBuild(f"SCHEDULER_PERF={folder} is no folder")
        check_go("kube-scheduler's workloads come out of its Go module (or name a folder in SCHEDULER_PERF)")
        with one_at_a_time(_cached(env)):
            if not folder.is_dir():
                _copy_workloads(folder)
    return folder


def _cached(env: Mapping[str, str]) -> Path:
    cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "kubenexus" / "controlplane" / _pins()


def _pins() -> str:
    """Other pins or other flags are another folder."""
    files = sorted([*HERE.glob("*/go.*"), *HERE.glob("*/*.go")])
    said = [*(file.read_bytes() for file in files), " ".join([*FLAGS, _stamps(version())]).encode()]
    return hashlib.sha256(b"\0".join(said)).hexdigest()[:16]


def check_go(why: str, module: Path = HERE / "kubernetes") -> None:
    """Raises CannotBuild if there is no Go that builds this module."""
    if not shutil.which("go"):
        raise CannotBuild(f"go not found: {why}")
    # Any command that reads go.mod: an old Go refuses, unless it may fetch a newer one by itself.
    asked = subprocess.run(
        ["go", "list", "-m"], cwd=module, env=go_environment(), capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise CannotBuild(asked.stderr.strip().splitlines()[-1])


def _build(folder: Path) -> None:
    """Into a folder beside, which gets its name only when everything is in it."""
    unfinished = f"{folder.name}.building-"
    for left in folder.parent.glob(f"{unfinished}*"):  # by a build that was killed; we alone build these pins now
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=unfinished, dir=folder.parent) as name:
        made = Path(name) / "made"
        made.mkdir()
        go_build(HERE / "etcd", made / "etcd", ["go.etcd.io/etcd/server/v3"])
        commands = [f"k8s.io/kubernetes/cmd/{program}" for program in KUBERNETES]
        go_build(HERE / "kubernetes", made, commands, _stamps(version()))
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)


def _copy_workloads(folder: Path) -> None:
    """The YAML alone, from the module that the programs are built from."""
    source = module_sources(HERE / "kubernetes", MODULE) / "test" / "integration" / WORKLOADS
    if not source.is_dir():
        raise CannotBuild(f"{MODULE} {version()} has no {source}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.copying-", dir=folder.parent) as name:
        for file in source.rglob("*.yaml"):
            copy = Path(name) / "made" / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())  # not its mode: Go's cache is read-only
        (Path(name) / "made").rename(folder)


def go_build(module: Path, output: Path, packages: list[str], stamps: str = "", more: Sequence[str] = ()) -> None:
    """Builds programs of a module into a folder, or one into a file. `more` are further flags."""
    flags = [*FLAGS, f"-ldflags=-s -w {stamps}".rstrip(), *more]
    where = f"{output}{os.sep}" if output.is_dir() else str(output)
    print(f"building {', '.join(packages)}", flush=True)
    command, last = ["go", "build", *flags, "-o", where, *packages], ""
    with subprocess.Popen(command, cwd=module, env=go_environment(), stderr=subprocess.PIPE, text=True) as building:
        for line in building.stderr or ():
            sys.stderr.write(line)
            last = line.strip() or last
    if building.returncode:
        raise CannotBuild(f"go build in {module.name} failed with {building.returncode}: {last}")


def module_sources(module: Path, name: str) -> Path:
    """Returns the folder with the sources of a module that `module` requires. Go has it in its cache, or fetches it."""
    asked = subprocess.run(
        ["go", "mod", "download", "-json", name],
        cwd=module,
        env=go_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        raise CannotBuild(f"go mod download {name} failed: {' '.join(asked.stderr.split()) or asked.returncode}")
    return Path(json.loads(asked.stdout)["Dir"])


def go_environment() -> dict[str, str]:
    """Returns the environment of Go commands."""
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}


def version() -> str:
    """The Kubernetes that is pinned: `v1.37.1`."""
    pins = (HERE / "kubernetes" / "go.mod").read_text(encoding="utf-8")
    found = re.search(r"^require k8s\.io/kubernetes (v\S+)$", pins, re.MULTILINE)
    assert found, "kubernetes/go.mod names no version"
    return found.group(1)


def _stamps(release: str) -> str:
    major, minor, _ = release.removeprefix("v").split(".", 2)
    said = {"gitVersion": release, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X {package}.{name}={value}" for package in STAMPED for name, value in said.items())


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Two builds of the same pins would only take twice as long; the second waits and finds everything there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str]) -> None:
    try:
        if "--workloads" in arguments:
            print(provide_workloads())
            return
        print(f"control plane {version()} in {provide()}")
        if not os.environ.get("KUBEBUILDER_ASSETS"):
            print(f"kube-scheduler's workloads in {provide_workloads()}")
    except CannotBuild as problem:
        sys.exit(f"make controlplane: {problem}")


if __name__ == "__main__":
    main(sys.argv[1:])
