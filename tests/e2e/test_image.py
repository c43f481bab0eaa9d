"""The image: built and run where a container engine runs; elsewhere its steps are taken one by one, and measured."""

import json
import os
import re
import resource
import subprocess
import time
from pathlib import Path

import pytest

from kubenexus import __version__
from tests.e2e.image import engine
from tests.e2e.image.measure import packed, unpacked
from tests.e2e.image.steps import ROOT, Steps

MB = 1_000_000
LIMIT = 120 * MB  # what a node pulls
BASE = 50 * MB  # python:3.13-slim as it is pulled: registries list about 45 MB; it cannot be measured without one
START_SECONDS = 2.0


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Steps, Path]:
    taken = Steps(tmp_path_factory.mktemp("image"))
    return taken, taken.take()


def environment(steps: Steps, image: Path) -> dict[str, str]:
    """The variables that the image sets, and no others."""
    pairs = dict(word.split("=", 1) for word in steps.last.last("ENV").split())
    return {name: value.replace("/opt/", f"{image}/opt/").replace("$PATH", "/nowhere") for name, value in pairs.items()}


def run(steps: Steps, image: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command of the image without a shell. The script of the entry point names the folder it was built in, so
    the interpreter of the image is called with its module."""
    (program,) = steps.last.words("ENTRYPOINT")
    assert (image / "opt/kubenexus/bin" / program).stat().st_mode & 0o111
    python = image / "opt/kubenexus/bin/python"
    return subprocess.run(
        [python, "-m", program, *words],
        env=environment(steps, image),
        cwd=image,
        capture_output=True,
        text=True,
        check=True,
    )


def test_its_steps_make_what_starts_soon_and_is_small(steps: tuple[Steps, Path]) -> None:
    taken, image = steps
    before = {path: path.lstat().st_mtime_ns for path in image.rglob("*")}
    assert run(taken, image, "--version").stdout == f"kubenexus, version {__version__}\n"
    assert "--leader-elect" in run(taken, image, *taken.last.words("CMD"), "--help").stdout
    place = run(taken, image, "config", "defaults").stdout
    assert "kubenexus-scheduler" in place
    assert {path: path.lstat().st_mtime_ns for path in image.rglob("*")} == before, "its file system is read-only"

    assert packed(image) + BASE <= LIMIT
    assert unpacked(image) <= 165 * MB
    assert not list(image.rglob("numpy/**/tests")), "trimmed"


def test_it_starts_within_two_seconds(steps: tuple[Steps, Path]) -> None:
    """To the first thing that needs the network: the answer of an API server that is not there. In CPU time, since
    other programs run on the machine of the tests."""
    taken, image = steps
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        with pytest.raises(subprocess.CalledProcessError) as ended:
            run(taken, image, "run", "--master=http://127.0.0.1:1", "--leader-elect=false", "--secure-port=0")
        assert "127.0.0.1:1" in ended.value.stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        spent.append(min(used, time.perf_counter() - began))
    assert min(spent) <= START_SECONDS


def test_its_list_of_packages_is_what_is_installed_at_pinned_versions(steps: tuple[Steps, Path]) -> None:
    _, image = steps
    listed = json.loads((image / "opt/kubenexus/sbom.cdx.json").read_text())
    versions = {each["name"]: each["version"] for each in listed["components"]}
    pins = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    pinned = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins}
    assert versions == {name: pinned.get(name) for name in versions}
    assert {"numpy", "aiohttp", "uvloop", "cel-expr-python"} <= versions.keys()
    assert not {"pytest", "mypy", "hatchling", "pip"} & versions.keys(), "tools stay behind"
    installed = {path.name.split("-")[0].lower().replace("_", "-") for path in image.rglob("*.dist-info")}
    assert installed == {*versions, "kubenexus"}


def test_it_is_built_and_runs_where_an_engine_is(steps: tuple[Steps, Path]) -> None:
    found = engine.running()
    if found is None:
        assert steps[1].is_dir(), "no engine runs here: the tests above took its steps"
        return
    tag = f"kubenexus-test:{os.getpid()}"
    found.build(ROOT, tag)
    assert found.run(tag, "--version") == f"kubenexus, version {__version__}\n"
    assert "--leader-elect" in found.run(tag, "run", "--help")
    subprocess.run([found.program, "image", "rm", tag], check=False, capture_output=True)
