"""`make controlplane` builds once, never leaves half a folder behind, and says in one line what it lacks."""

import os
import stat
from pathlib import Path

import pytest

from tests.e2e.controlplane import build

# A Go that makes empty programs: `go build -o where packages...`.
BUILDS = """
[ "$1" = build ] || exit 0
echo built >> "$LOG"
while [ "$1" != -o ]; do shift; done
where=$2; shift 2
case $where in */) for package; do make "$where${package##*/}"; done;; *) make "$where";; esac
"""
MAKES = 'make() { echo "#!/bin/sh" > "$1"; chmod +x "$1"; }\n'
TOO_OLD = 'echo "go: go.mod requires go >= 1.26.0 (running go 1.20; GOTOOLCHAIN=local)" >&2; exit 1\n'
BREAKS = '[ "$1" = build ] && exit 2; exit 0\n'


class Machine:
    """A machine with the Go that a test wants."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.env = {"XDG_CACHE_HOME": str(folder / "cache")}
        (folder / "bin").mkdir()
        monkeypatch.setenv("LOG", str(self.log))
        self._monkeypatch = monkeypatch
        self._monkeypatch.setenv("PATH", str(folder / "bin"))

    def has_go(self, script: str) -> None:
        go = self.folder / "bin" / "go"
        go.write_text("#!/bin/sh\n" + script)
        go.chmod(go.stat().st_mode | stat.S_IXUSR)
        self._monkeypatch.setenv("PATH", f"{go.parent}:{os.defpath}")

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


@pytest.mark.parametrize(
    ("go", "line"),
    [
        pytest.param(None, "go not found", id="no Go"),
        pytest.param(TOO_OLD, r"requires go >= 1\.26\.0 \(running go 1\.20", id="a Go too old"),
        pytest.param(BREAKS, "go build in etcd failed with 2", id="a build that breaks"),
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
