"""No package imports a later one, and the import-linter contract has the intended order."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, no_logo=True))"


def lint_imports(*, cwd: Path) -> subprocess.CompletedProcess[str]:
    # In a process of its own: import-linter changes sys.path and keeps state.
    return subprocess.run([sys.executable, "-c", LINT], capture_output=True, text=True, check=False, cwd=cwd)


def test_no_package_imports_a_later_one() -> None:
    checked = lint_imports(cwd=ROOT)
    assert checked.returncode == 0, checked.stdout
    assert "0 broken" in checked.stdout


def test_the_contract_orders_the_packages_along_the_path_of_a_job() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = tools["importlinter"]["contracts"][0]["layers"]
    assert [layer.replace("(", "").replace(")", "") for layer in reversed(layers)] == [
        "base",
        "api",
        "client",
        "state",
        "framework",
        "config",
        "plugins | queue",
        "cycle",
        "plan",
        "bind",
        "observe",
        "app",
        "sim | web | webhook | discovery | explain",
        "cli",
        "testing",
    ]


@pytest.mark.parametrize(
    ("package", "imports"),
    [
        pytest.param("base", "kubenexus.api", id="base knows Kubernetes"),
        pytest.param("state", "kubenexus.framework", id="the ledger knows plugins"),
        pytest.param("plugins", "kubenexus.queue", id="rules know the queue"),
        pytest.param("web", "kubenexus.sim", id="guests know each other"),
        pytest.param("cli", "kubenexus.testing", id="the product needs the test tools"),
        pytest.param("plan", "asyncio", id="a decision does I/O"),
        pytest.param("extras", "", id="a package that the contract does not list"),
    ],
)
def test_an_import_against_the_order_is_refused(tmp_path: Path, package: str, imports: str) -> None:
    built = ["base", "api", "state", "framework", "plugins", "queue", "cycle", "plan", "sim", "web", "cli", "testing"]
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for each in [".", *built, package]:
        folder = tmp_path / "kubenexus" / each
        folder.mkdir(parents=True, exist_ok=True)
        text = f"import {imports}" if each == package and imports else ""
        (folder / "__init__.py").write_text(text, encoding="utf-8")
    checked = lint_imports(cwd=tmp_path)
    assert checked.returncode == 1
    assert package in checked.stdout
