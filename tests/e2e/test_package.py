"""The sdist, and the wheel with all that it needs in an environment of its own, as `pip install` makes it."""

import subprocess
import tarfile
import venv
from pathlib import Path

from kubenexus import __version__
from tests.repository.test_distribution import ROOT, build, digest


def test_the_sdist_gives_the_same_wheel_and_has_what_its_tests_need(tmp_path: Path) -> None:
    wheel, sdist = build("wheel", ROOT, tmp_path / "wheel"), build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    tree = tmp_path / f"kubenexus-{__version__}"
    assert digest(build("wheel", tree, tmp_path / "from-sdist")) == digest(wheel)
    missing = [name for name in ("tests", "examples", "docs", "deploy", "Makefile") if not (tree / name).exists()]
    assert missing == []


def test_pip_installs_the_sdist_with_its_dependencies_and_the_extra(tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    flags = ("--disable-pip-version-check", "--quiet", "--no-compile", f"--constraint={ROOT / 'constraints.txt'}")
    pip = [str(python), "-m", "pip", "install", *flags]
    subprocess.run([*pip, "hatchling", "editables"], check=True)
    subprocess.run([*pip, "--no-build-isolation", f"{sdist}[fast]"], check=True, cwd=tmp_path)
    subprocess.run([python, "-m", "pip", "check"], check=True, capture_output=True)
    program = python.with_name("kubenexus")
    said = subprocess.run([program, "--version"], env={}, capture_output=True, text=True, check=True)
    assert said.stdout == f"kubenexus, version {__version__}\n"
    shown = subprocess.run([program, "config", "defaults"], env={}, capture_output=True, text=True, check=True)
    assert "kind: KubeSchedulerConfiguration" in shown.stdout
