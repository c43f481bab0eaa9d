"""`kubenexus simulate trace --cluster`: a dump of a cluster as the start of a replay."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from kubenexus.api.codec import encode
from kubenexus.api.core import Node, Pod
from kubenexus.api.meta import OwnerReference
from kubenexus.cli import main
from kubenexus.testing.builders import a_node, a_pod


def dumped(folder: Path, *objects: Node | Pod) -> Path:
    items = [{**json.loads(encode(each)), "apiVersion": "v1", "kind": type(each).__name__} for each in objects]
    path = folder / "dump.json"
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return path


def replay(*arguments: object) -> Result:
    options = ["--policy", "kube-scheduler", "-o", "json", *map(str, arguments)]
    return CliRunner().invoke(main, ["simulate", "trace", *options])


def result(*arguments: object) -> dict[str, Any]:
    done = replay(*arguments)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_a_daemon_set(pod: Pod) -> Pod:
    owner = OwnerReference(kind="DaemonSet", name="d", api_version="apps/v1", controller=True)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=[owner]))


def test_pods_that_run_stay_and_pods_that_wait_arrive(tmp_path: Path) -> None:
    runs, waits = a_pod("runs", gpu=6, node="n1"), [a_pod(f"w{i}", gpu=2) for i in range(2)]
    found = result("--cluster", dumped(tmp_path, a_node("n1", gpu=8), runs, *waits))
    assert (found["trace"], found["pods"], found["placed"]) == ("dump", 2, 1)
    assert found["first_refusal_at"] == 125.0


def test_again_places_all_pods_but_those_of_daemon_sets(tmp_path: Path) -> None:
    daemon = of_a_daemon_set(a_pod("daemon", gpu=2, node="n1"))
    pods = [
        daemon,
        a_pod("runs", gpu=6, node="n1"),
        a_pod("waits", gpu=2),
        a_pod("ended", node="n1", phase="Succeeded"),
    ]
    found = result("--again", "--cluster", dumped(tmp_path, a_node("n1", gpu=8), *pods))
    assert (found["pods"], found["placed"]) == (2, 1)
    assert found["allocated_at"]["100"] == 100.0


def test_jobs_of_a_file_arrive_after_those_of_the_dump(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text('{"kind":"job","name":"more","gpus":8}\n')
    found = result(jobs, "--cluster", dumped(tmp_path, a_node("n1", gpu=8), a_pod("waits", gpu=2)))
    assert (found["pods"], found["placed"]) == (2, 1)


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        pytest.param([], 2, "a TRACE.jsonl, a --cluster, or both are needed", id="nothing to play"),
        pytest.param(["x.jsonl", "--again"], 2, "--again needs --cluster", id="again without a cluster"),
        pytest.param(["--cluster", "DUMP"], 1, "no jobs", id="a dump without pods that wait"),
        pytest.param(["NODES", "--cluster", "DUMP"], 1, "has nodes, and so has --cluster", id="nodes twice"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, options: list[str], code: int, problem: str) -> None:
    nodes = tmp_path / "nodes.jsonl"
    nodes.write_text('{"kind":"node","name":"n"}\n{"kind":"job","name":"j"}\n')
    named = {"DUMP": str(dumped(tmp_path, a_node("n1"))), "NODES": str(nodes)}
    done = replay(*[named.get(each, each) for each in options])
    assert (done.exit_code, problem in done.output.splitlines()[-1]) == (code, True)
