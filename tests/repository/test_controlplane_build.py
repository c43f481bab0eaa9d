"""`make controlplane` builds once, never leaves half a folder behind, and says in one line what it lacks."""

import os
import stat
from pathlib import Path

import pytest

from tests.e2e.controlplane import build

# A Go that makes empty programs: `go build -o where packages...`.
BUILDS = """
if [ "$1 $2" = "mod download" ]; then echo "{\\"Dir\\": \\"$MODULE\\"}"; exit 0; fi
[ "$1" = build ] || exit 0
echo built >> "$LOG"
while [ "$1" != -o ]; do shift; done
where=$2; shift 2
case $where in */) for package; do make "$where${package##*/}"; done;; *) make "$where";; esac
"""
MAKES = 'make() { echo "#!/bin/sh" > "$1"; chmod +x "$1"; }\n'
TOO_OLD = 'echo "go: go.mod requires go >= 1.26.0 (running go 1.20; GOTOOLCHAIN=local)" >&2; exit 1\n'
NO_MODULE = '[ "$1" = mod ] && { echo no such module >&2; exit 1; }; exit 0\n'
BREAKS = '[ "$1" = build ] && { echo x.go:1:1: undefined: Y >&2; exit 2; }; exit 0\n'


class Machine:
    """A machine with the Go that a test wants."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.env = {"XDG_CACHE_HOME": str(folder / "cache")}
        self.module = folder / "module"
        (folder / "bin").mkdir()
        monkeypatch.setenv("LOG", str(self.log))
        monkeypatch.setenv("MODULE", str(self.module))
        self._monkeypatch = monkeypatch
        self._monkeypatch.setenv("PATH", str(folder / "bin"))

    def has_go(self, script: str) -> None:
        go = self.folder / "bin" / "go"
        go.write_text("#!/bin/sh\n" + script)
        go.chmod(go.stat().st_mode | stat.S_IXUSR)
        self._monkeypatch.setenv("PATH", f"{go.parent}:{os.defpath}")

    def has_sources(self) -> None:
        """Read-only, as Go keeps them."""
        source = self.module / "test" / "integration" / "scheduler_perf"
        for name in ("misc/performance-config.yaml", "templates/pod.yaml", "scheduler_perf.go"):
            file = source / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)
            file.chmod(0o444)

    def builds(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_it_builds_every_program_once(machine: Machine) -> None:
    machine.has_go(MAKES + BUILDS)
    folder = build.provide(machine.env)
    assert (build.missing(folder), machine.builds()) == ([], 2)
    assert build.provide(machine.env) == folder == build.assets(machine.env)
    assert machine.builds() == 2


def test_what_a_killed_build_left_behind_is_neither_used_nor_kept(machine: Machine) -> None:
    machine.has_go(MAKES + BUILDS)
    folder = build.assets(machine.env)
    left = folder.parent / f"{folder.name}.building-x"
    left.mkdir(parents=True)
    assert build.missing(build.provide(machine.env)) == []
    assert not left.exists()


def test_a_folder_that_was_given_is_used_as_it_is(machine: Machine) -> None:
    machine.has_go(MAKES + BUILDS)
    made = build.provide(machine.env)
    assert build.provide({"KUBEBUILDER_ASSETS": str(made)}) == made
    with pytest.raises(build.CannotBuild, match=r"KUBEBUILDER_ASSETS=.* lacks kube-apiserver, .*etcd$"):
        build.provide({"KUBEBUILDER_ASSETS": str(machine.folder)})


def test_the_workloads_are_copied_out_of_the_module_once(machine: Machine) -> None:
    machine.has_go(MAKES + BUILDS)
    machine.has_sources()
    folder = build.provide_workloads(machine.env)
    copied = sorted(file for file in folder.rglob("*") if file.is_file())
    assert [str(file.relative_to(folder)) for file in copied] == ["misc/performance-config.yaml", "templates/pod.yaml"]
    assert all(os.access(file, os.W_OK) and file.stat().st_mode & stat.S_IWUSR for file in copied)
    machine.has_go("exit 1")
    assert build.provide_workloads(machine.env) == folder == build.workloads(machine.env)
    assert folder.parent == build.assets(machine.env)
    assert sorted(file.name for file in folder.parent.iterdir()) == ["scheduler_perf"]


def test_a_build_keeps_what_is_missing_apart(machine: Machine) -> None:
    """Programs without workloads, as an older build left them, are kept; so are workloads without programs."""
    machine.has_go(MAKES + BUILDS)
    machine.has_sources()
    folder = build.provide(machine.env)
    assert not build.workloads(machine.env).exists()
    build.provide_workloads(machine.env)
    assert (build.missing(folder), machine.builds()) == ([], 2)


def test_workloads_that_were_given_are_used_as_they_are(machine: Machine) -> None:
    given = machine.folder / "given"
    env = {**machine.env, "SCHEDULER_PERF": str(given)}
    with pytest.raises(build.CannotBuild, match=r"^SCHEDULER_PERF=.*given is no folder$"):
        build.provide_workloads(env)
    given.mkdir()
    assert build.provide_workloads(env) == given


def test_the_workloads_beside_given_programs_are_taken_and_never_written(machine: Machine) -> None:
    machine.has_go(MAKES + BUILDS)
    machine.has_sources()
    given = machine.folder / "assets"
    given.mkdir()
    env = {**machine.env, "KUBEBUILDER_ASSETS": str(given)}
    assert build.provide_workloads(env) == build.workloads(machine.env)
    assert list(given.iterdir()) == []
    (given / "scheduler_perf").mkdir()
    assert build.provide_workloads(env) == given / "scheduler_perf"


@pytest.mark.parametrize(
    ("go", "line"),
    [
        pytest.param(None, r"go not found: .*SCHEDULER_PERF\)$", id="no Go"),
        pytest.param(
            '[ "$1" = mod ] && { echo no such module >&2; exit 1; }; exit 0\n', "no such module", id="no module"
        ),
        pytest.param(MAKES + BUILDS, "v1.37.1 has no .*scheduler_perf$", id="a module without them"),
    ],
)
def test_workloads_that_cannot_be_had_are_one_line(machine: Machine, go: str | None, line: str) -> None:
    if go:
        machine.has_go(go)
    with pytest.raises(build.CannotBuild, match=line) as problem:
        build.provide_workloads(machine.env)
    assert "\n" not in str(problem.value)
    assert not build.workloads(machine.env).exists()


@pytest.mark.parametrize(
    ("go", "line"),
    [
        pytest.param(None, "go not found", id="no Go"),
        pytest.param(TOO_OLD, r"requires go >= 1\.26\.0 \(running go 1\.20", id="a Go too old"),
        pytest.param(BREAKS, "go build in etcd failed with 2: x.go:1:1: undefined: Y", id="a build that breaks"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_looks_finished(machine: Machine, go: str | None, line: str) -> None:
    if go:
        machine.has_go(go)
    with pytest.raises(build.CannotBuild, match=line) as problem:
        build.provide(machine.env)
    assert "\n" not in str(problem.value)
    assert not build.assets(machine.env).exists()


def test_the_version_is_the_pinned_one() -> None:
    assert build.version() == "v1.37.1"
