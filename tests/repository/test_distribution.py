"""The wheel: built without network by the pinned backend, the same each time, installed by itself. The sdist is
tested in tests/e2e/test_package.py."""

import contextlib
import email.message
import hashlib
import importlib.util
import json
import os
import site
import subprocess
import sys
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from kubenexus import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMMANDS = ("kubenexus", "kubectl-nexus", "kubectl_complete-nexus")


def build(kind: str, source: Path, folder: Path) -> Path:
    """One distribution, by the backend that pyproject.toml names, in this process."""
    from hatchling import build as backend

    folder.mkdir()
    with contextlib.chdir(source), open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):
        return folder / str(getattr(backend, f"build_{kind}")(str(folder)))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distributions")


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    return build("wheel", ROOT, folder / "wheel")


def metadata(wheel: Path) -> "email.message.Message[str, str]":
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(f"kubenexus-{__version__}.dist-info/METADATA").decode())


def test_the_same_tree_gives_the_same_bytes(wheel: Path, folder: Path) -> None:
    assert digest(build("wheel", ROOT, folder / "again")) == digest(wheel)


def test_the_wheel_has_types_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert "kubenexus/py.typed" in names
    top = {name.split("/")[0] for name in names}
    assert top == {"kubenexus", f"kubenexus-{__version__}.dist-info"}
    tracked = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/kubenexus").rglob("*.py")}
    assert tracked <= names


def test_what_it_says_of_itself(wheel: Path) -> None:
    found = metadata(wheel)
    assert (found["Name"], found["Version"], found["License-Expression"]) == ("kubenexus", __version__, "Apache-2.0")
    assert found["Requires-Python"] == ">=3.11"
    assert set(found.get_all("Provides-Extra") or ()) == set(PROJECT["optional-dependencies"])
    assert "Typing :: Typed" in (found.get_all("Classifier") or ())
    assert str(found.get_payload()).startswith("# KubeNexus")


def test_an_environment_that_has_only_the_wheel_and_its_dependencies_has_the_commands(
    wheel: Path, tmp_path: Path
) -> None:
    home = tmp_path / "clean"
    venv.create(home, with_pip=False)
    python = home / "bin/python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", "--no-compile", str(wheel)], check=True, cwd=tmp_path)
    # The dependencies of this environment, without its own kubenexus: a path in a .pth file is not read for others.
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    environment = {"PATH": str(home / "bin"), "PYTHONDONTWRITEBYTECODE": "1"}
    for command in COMMANDS:
        assert (home / "bin" / command).exists(), command
    said = subprocess.run(["kubenexus", "--version"], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == f"kubenexus, version {__version__}\n"
    said = subprocess.run(["kubectl-nexus", "--help"], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("Usage: kubectl nexus ")
    place = "import kubenexus, json; print(json.dumps(kubenexus.__file__))"
    said = subprocess.run([python, "-c", place], env=environment, capture_output=True, text=True, check=True)
    assert Path(json.loads(said.stdout)).is_relative_to(packages)


def test_a_list_of_packages_is_a_cyclonedx_document() -> None:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "scripts" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    sbom = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sbom)
    found = sbom.document(Path(site.getsitepackages()[0]))
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    components = {each["name"]: each for each in found["components"]}
    assert components["numpy"]["purl"] == f"pkg:pypi/numpy@{components['numpy']['version']}"
    references = {each["bom-ref"] for each in [*found["components"], found["metadata"]["component"]]}
    assert {each["ref"] for each in found["dependencies"]} == references
    needs = {each["ref"]: each["dependsOn"] for each in found["dependencies"]}
    ours = needs[f"pkg:pypi/kubenexus@{__version__}"]
    assert components["numpy"]["purl"] in ours
    assert all(each.get("licenses") for each in found["components"] if each["bom-ref"] in ours)
    assert {each for all in needs.values() for each in all} <= references
    with pytest.raises(LookupError, match="there is no kubenexus below"):
        sbom.document(ROOT / "docs")
