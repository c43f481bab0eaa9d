"""`kubenexus why` and the kubectl plugin, on a file and on a served cluster."""

import asyncio
import json
import random
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kubenexus import __main__ as entry
from kubenexus.base.clock import WallClock
from kubenexus.cli import main
from kubenexus.cli.completion import plugin_candidates
from kubenexus.client import kinds
from kubenexus.client.verbs import create
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedClusterSpec, open_embedded_cluster
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.explain.test_explain_gangs import member
from tests.explain.test_explanation import node, pod

ROOT = Path(__file__).parents[2]
OWNER = [{"kind": "Job", "name": "train", "uid": "u", "apiVersion": "batch/v1", "controller": True}]
SET_OWNER = [{"kind": "ReplicaSet", "name": "shop-7f9", "uid": "u", "apiVersion": "apps/v1", "controller": True}]


def owned(name: str, owner: list[Any], **spec: Any) -> dict[str, Any]:
    made = pod(name, "9", **spec)
    made["metadata"]["ownerReferences"] = owner
    return made


ITEMS = [
    node("n"),
    pod("a", "9"),
    owned("train-0", OWNER, nodeName="n"),
    owned("train-1", OWNER),
    owned("shop-7f9-x", SET_OWNER),
    *(member(i) for i in range(4)),
]


def run(folder: Path, *arguments: str, items: list[Any] = ITEMS) -> Result:
    dump = folder / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    return CliRunner().invoke(main, [*arguments, "--cluster", str(dump)])


@pytest.mark.parametrize(
    ("what", "found"),
    [
        pytest.param(["a", "-n", "web"], "web/a", id="a pod by its name"),
        pytest.param(["web/a"], "web/a", id="with its namespace"),
        pytest.param(["pod/a", "-n", "web"], "web/a", id="as kubectl names it"),
        pytest.param(["job/train", "-n", "web"], "web/train-1", id="a Job: its first pod that waits"),
        pytest.param(["web/job/train"], "web/train-1", id="a Job with its namespace"),
        pytest.param(["train", "-n", "web"], "web/train-1", id="the name of what made the pods"),
        pytest.param(["deployment/shop", "-n", "web"], "web/shop-7f9-x", id="a Deployment, over its ReplicaSet"),
        pytest.param(["gang/llama", "-n", "web"], "web/llama-0", id="a gang"),
    ],
)
def test_what_a_user_may_name(tmp_path: Path, what: list[str], found: str) -> None:
    result = run(tmp_path, "why", *what)
    assert result.exit_code in (0, 2), result.output
    assert result.output.splitlines()[0] == found


@pytest.mark.parametrize(
    ("what", "told"),
    [
        pytest.param("pod/train", "pod train does not exist in namespace default", id="a job is not a pod"),
        pytest.param("job/other", "job other does not exist in namespace default", id="no such job"),
        pytest.param("a/b/c/d", "expected NAME, KIND/NAME or NAMESPACE/NAME", id="too many parts"),
        pytest.param("", "expected NAME, KIND/NAME or NAMESPACE/NAME, not ''", id="nothing"),
        pytest.param("a", "did you mean web/a?", id="another namespace"),
    ],
)
def test_what_does_not_exist_is_one_line(tmp_path: Path, what: str, told: str) -> None:
    result = run(tmp_path, "why", what)
    assert result.exit_code == 1
    assert told in result.output
    assert len(result.output.splitlines()) == 1


def test_a_server_that_is_away_is_named_with_where_its_address_is_from(tmp_path: Path) -> None:
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": ""}}
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps({"clusters": [cluster], "contexts": [context], "current-context": "c"}))
    result = CliRunner().invoke(main, ["why", "a", "--kubeconfig", str(file)])
    assert result.exit_code == 1
    told = f"cannot reach http://127.0.0.1:1: connection refused (kubeconfig {file} (context c))"
    assert result.output == f"Error: {told}\n"


def test_yaml_has_the_same_as_json(tmp_path: Path) -> None:
    texts = [run(tmp_path, "why", "web/a", "-o", form).output for form in ("json", "yaml")]
    assert json.loads(texts[0]) == yaml.safe_load(texts[1])


def test_labels_are_bold_on_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "items": ITEMS}))
    arguments = ["why", "web/a", "--cluster", str(dump)]
    assert "\x1b[" not in CliRunner().invoke(main, arguments).output
    assert "\x1b[1mWHY\x1b[0m      0/1" in CliRunner().invoke(main, arguments, color=True).output
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in CliRunner().invoke(main, arguments, color=True).output


# --- the plugin -----------------------------------------------------------------------------------------------------


def test_the_plugin_is_the_same_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl-nexus", "why", "--help"])
    with pytest.raises(SystemExit):
        entry.plugin()
    assert capsys.readouterr().out.startswith("Usage: kubectl nexus why ")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-nexus"] == "kubenexus.__main__:plugin"


def test_kubectl_completes_commands_and_options() -> None:
    assert [line.split("\t")[0] for line in plugin_candidates(["wh"]).splitlines()] == ["whatif", "why", ":4"]
    assert "--namespace" in plugin_candidates(["why", "--n"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_have_a_completion_script(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_KUBENEXUS_COMPLETE" in result.output


# --- the live cluster -----------------------------------------------------------------------------------------------


def test_a_live_cluster_gets_the_answer_of_its_dump(tmp_path: Path) -> None:
    async def asked() -> dict[str, Result]:
        clock = WallClock()
        nodes = NodeTemplate(prefix="n", capacity={"cpu": "2", "memory": "8Gi", "pods": "10"}).nodes(3, clock.now())
        spec = EmbeddedClusterSpec(nodes, AgentSettings(), controllers=False)
        async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
            waiting = {"metadata": {"name": "a"}, "spec": {"containers": [CONTAINER]}}
            await box.client.send(create(kinds.PODS, waiting, "default"))
            live = ["--kubeconfig", str(box.kubeconfig)]
            commands = {"text": ["why", "a"], "json": ["why", "pod/a", "-o", "json"], "devices": ["devices"]}
            invoke = CliRunner().invoke
            return {name: await asyncio.to_thread(invoke, main, [*said, *live]) for name, said in commands.items()}

    results = asyncio.run(asked())
    assert results["text"].exit_code == 2, results["text"].output
    assert "WHY      0/3 nodes are available: 3 Insufficient cpu." in results["text"].output
    assert "STARTS AT ONCE IF  node n0 has 1 cpu more" in results["text"].output
    assert json.loads(results["json"].output)["starts_if"]["suggestions"][0]["kind"] == "capacity"
    assert results["devices"].exit_code == 0, results["devices"].output


CONTAINER = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "3"}}}


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "current-context": "c",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    result = CliRunner().invoke(main, ["why", "a", "--kubeconfig", str(tmp_path / "config")])
    assert result.exit_code == 1
    assert len(result.output.splitlines()) == 1
