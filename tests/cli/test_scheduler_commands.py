"""`why`, `top` and `decisions` through the live API, with the user of a kubeconfig, and without it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubenexus.cli import main
from kubenexus.testing.builders import a_pod
from tests.app.api_fixture import LOCAL, OURS, ApiFixture, served
from tests.app.test_live_api import A_POD

DUMP = Path(__file__).parents[2] / "examples" / "why" / "cluster.json"


def kubeconfig(folder: Path, token: str) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
        "current-context": "x",
    }
    path = folder / token
    path.touch(mode=0o600)
    path.write_text(json.dumps(content))
    return str(path)


def commanded(folder: Path, *commands: list[str], prepare: Callable[[ApiFixture], None] | None = None) -> list[Result]:
    """Runs commands, of which the first word is a token, against a served scheduler."""
    results = []

    async def story(api: ApiFixture) -> None:
        if prepare is not None:
            prepare(api)
            await api.fixture.work()
        for token, *words in commands:
            access = ["--kubeconfig", kubeconfig(folder, token), "--scheduler", f"http://{LOCAL}:{api.port}"]
            results.append(await asyncio.to_thread(CliRunner().invoke, main, [*words, *access]))

    served(story)
    return results


def test_why_and_top_and_decisions_ask_the_scheduler(tmp_path: Path) -> None:
    why, short, jobs, namespaces, nodes, decided = commanded(
        tmp_path,
        ["admin", "why", "train"],
        ["member", "why", "train"],
        ["member", "top", "jobs", "-n", "ml"],
        ["admin", "top", "namespaces"],
        ["admin", "top", "nodes"],
        ["admin", "decisions", "-A"],
    )
    assert why.exit_code == 2, why.output
    assert why.output.startswith("ml/train\n")
    assert "STARTS AT ONCE IF  node cordoned-node is uncordoned" in why.output
    assert short.exit_code == 2, short.output
    assert "WHY      0/2 nodes are available" in short.output
    assert "cordoned-node" not in short.output
    assert jobs.output.splitlines()[1].split()[:3] == ["ml/train", "unschedulable", "0"]
    assert namespaces.output.splitlines()[1].split() == ["ml", "-", "ml", "bronze", "1", "0", "0", "1", "0", "0"]
    assert [line.split()[:3] for line in nodes.output.splitlines()[1:]] == [
        ["cordoned-node", "Cordoned", "0/8"],
        ["secret-node", "Ready", "2/2"],
    ]
    assert "placed  web/shop  shop to secret-node" in decided.output
    assert "waits   ml/train  0/2 nodes are available" in decided.output


def test_whatif_asks_the_scheduler(tmp_path: Path) -> None:
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(A_POD)
    fits, waits, refused = commanded(
        tmp_path,
        ["admin", "whatif", "-f", str(manifest), "--uncordon", "cordoned-node"],
        ["admin", "whatif", "-f", str(manifest), "-o", "json"],
        ["stranger", "whatif", "-f", str(manifest)],
    )
    assert (fits.exit_code, fits.output.splitlines()[1].split()) == (0, ["ml/next", "ml/next", "cordoned-node"])
    assert waits.exit_code == 2, waits.output
    assert json.loads(waits.output)["jobs"][0]["nodes"] == {}
    assert (refused.exit_code, "forbidden" in refused.output) == (1, True)


def test_a_gang_is_explained_by_the_scheduler_as_by_a_dump(tmp_path: Path) -> None:
    def prepare(api: ApiFixture) -> None:
        labels = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "2"}
        api.fixture.pods(*(a_pod(f"g{i}", namespace="ml", cpu=2, labels=labels, scheduler_name=OURS) for i in range(2)))

    (why,) = commanded(tmp_path, ["admin", "why", "gang/g", "-o", "json"], prepare=prepare)
    assert why.exit_code == 2, why.output
    found = json.loads(why.output)
    assert found["explanation"]["gang"] == {"name": "ml/g", "waiting": 2, "bound": 0, "minimum": 2, "held": ""}


def test_a_scheduler_that_refuses_or_does_not_answer_is_named_and_the_cluster_is_read(tmp_path: Path) -> None:
    (refused,) = commanded(tmp_path, ["stranger", "top", "jobs", "-n", "ml"])
    assert "warning: the scheduler did not answer" in refused.output
    assert 'cannot list pods in namespace "ml"' in refused.output
    access = ["--kubeconfig", kubeconfig(tmp_path, "admin"), "--scheduler", "http://127.0.0.1:1"]
    result = CliRunner().invoke(main, ["decisions", "-A", *access])
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["top", "jobs"], "ml/llama"),
        (["top", "namespaces"], "search"),
        (["top", "nodes"], "gpu-4  Cordoned"),
    ],
)
def test_without_a_scheduler_the_cluster_itself_is_shown(words: list[str], expected: str) -> None:
    result = CliRunner().invoke(main, [*words, "--cluster", str(DUMP)])
    assert result.exit_code == 0, result.output
    assert expected in result.output


def test_decisions_need_a_scheduler() -> None:
    result = CliRunner().invoke(main, ["decisions"])
    assert result.exit_code == 1
    assert "port-forward" in result.output


def test_credentials_are_not_sent_in_the_clear(tmp_path: Path) -> None:
    access = ["--kubeconfig", kubeconfig(tmp_path, "admin"), "--scheduler", "http://scheduler.example:10259"]
    result = CliRunner().invoke(main, ["decisions", "-A", *access])
    assert result.exit_code == 1
    assert "expected https://" in result.output
