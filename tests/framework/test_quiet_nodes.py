"""A user's scoring rule in ten lines of NumPy, in a package of its own, installed and enabled for real."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "quiet-nodes"
RULE = PACKAGE / "src" / "quiet_nodes" / "__init__.py"

# n1 is large and busy with pods that ask for nothing, n2 small and quiet: without the rule, size decides.
SCRIPT = """
import json, sys
from kubenexus.framework.profile import EnabledPlugin
from kubenexus.plugins import default_profile
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import run

nodes = [a_node("n1", cpu=64, memory="256Gi"), a_node("n2", cpu=8, memory="32Gi")]
busy = [a_pod(f"busy-{i}", node="n1") for i in range(5)]
def placed(profile):
    done = run(nodes, [*busy, a_pod("web", cpu=1, memory="1Gi")], profile=profile)
    scores = {s.plugin: s.normalized for s in done.decisions["web"].placements[0].scores}
    return done.placements["web"], scores
json.dump({
    "without": placed(None),
    "with": placed(default_profile(also=[EnabledPlugin("QuietNodes", weight=5)])),
    "told": placed(default_profile(also=[EnabledPlugin("QuietNodes", weight=5, args={"daemons": 5})])),
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in it, as `pip install --target` leaves it; offline."""
    target = tmp_path_factory.mktemp("site")
    if importlib.util.find_spec("hatchling") is None:
        _by_hand(target)
        return target
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*command, "--no-build-isolation", "--target", target, PACKAGE], check=True)
    return target


def _by_hand(target: Path) -> None:
    """What the build would write, for environments without the build backend."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (target / "quiet_nodes").mkdir()
    (target / "quiet_nodes" / "__init__.py").write_bytes(RULE.read_bytes())
    info = target / f"quiet_nodes-{project['version']}.dist-info"
    info.mkdir()
    named = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(named, encoding="utf-8")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


def ran(script: str, installed: Path | None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*([str(installed)] if installed else []), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)


def test_the_rule_is_about_ten_lines() -> None:
    tree = ast.parse(RULE.read_text(encoding="utf-8"))
    [rule] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    lines = {node.lineno for part in rule.body for node in ast.walk(part) if isinstance(node, ast.stmt)}
    assert len(lines) + 1 <= 10


def test_enabled_it_changes_where_a_pod_goes(installed: Path) -> None:
    answer = ran(SCRIPT, installed)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["without"][0] == "n1"
    assert "QuietNodes" not in found["without"][1]
    assert found["with"][0] == "n2"
    assert found["with"][1]["QuietNodes"] == 100
    assert found["told"][0] == "n1", "its argument says that five pods are nothing to mind"


def test_where_it_is_not_installed_its_name_is_unknown() -> None:
    answer = ran(SCRIPT, None)
    assert answer.returncode == 1
    assert "unknown plugin 'QuietNodes'" in answer.stderr


def test_its_readme_shows_code_that_works(installed: Path) -> None:
    """What a reader would copy: every Python block, in order."""
    blocks = (PACKAGE / "README.md").read_text(encoding="utf-8").split("```python\n")[1:]
    script = "\n".join(block.partition("```")[0] for block in blocks)
    answer = ran(script, installed)
    assert answer.returncode == 0, answer.stderr
