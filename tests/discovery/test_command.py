"""`kubenexus discover` on a folder that looks like a machine."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kubenexus.cli import main
from tests.discovery.machine_trees import description, make_tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path, description("mi300x"))


def test_a_dry_run_prints_what_would_be_written(root: Path) -> None:
    done = CliRunner().invoke(main, ["discover", "--dry-run", f"--root={root}", "--node-name=n1"])
    assert done.exit_code == 0, done.output
    told = yaml.safe_load(done.output)
    assert told["node"]["metadata"]["labels"]["gpu.kubenexus.io/model"] == "MI300X"
    assert told["nodeResourceTopology"]["metadata"]["name"] == "n1"
    assert len(told["machine"]["gpus"]) == 8


def test_a_dry_run_prints_json_and_follows_the_kubelet(root: Path, tmp_path: Path) -> None:
    kubelet = tmp_path / "config.yaml"
    kubelet.write_text("cpuManagerPolicy: static\ntopologyManagerPolicy: restricted\n")
    wish = ["discover", "--dry-run", "-o", "json", f"--root={root}", f"--kubelet-config={kubelet}"]
    told = json.loads(CliRunner().invoke(main, wish).output)
    assert told["nodeResourceTopology"]["attributes"][0] == {"name": "topologyManagerPolicy", "value": "restricted"}
    told = json.loads(CliRunner().invoke(main, [*wish, "--no-topology"]).output)
    assert told["nodeResourceTopology"] is None


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--interval=soon"], "--interval"),
        (["--interval=1ms"], "at least 1s"),
        ([], "name the node of this machine"),
        (["--dry-run", "--kubelet-config=/nonexistent/config.yaml"], "No such file"),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(
    words: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NODE_NAME", raising=False)
    done = CliRunner().invoke(main, ["discover", *words])
    assert done.exit_code != 0
    assert problem in done.output
    assert "Traceback" not in done.output
