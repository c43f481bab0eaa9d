"""`kubenexus eta`: with a scheduler, and on a file."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubenexus.cli import main
from tests.app.api_fixture import ApiFixture
from tests.cli.test_scheduler_commands import commanded

RUNTIME = "scheduling.kubenexus.io/max-runtime"
AMOUNTS = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def a_raw_pod(name: str, cpu: int, runtime: str, namespace: str = "default", **more: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}
    spec = {"schedulerName": "kubenexus-scheduler", "restartPolicy": "Never", "containers": [container]}
    status = {"phase": "Running", "startTime": "2099-01-01T00:00:00Z"} if more else {"phase": "Pending"}
    meta: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": name,
        "creationTimestamp": "2026-11-18T05:00:00Z",
    }
    meta["annotations"] = {RUNTIME: runtime}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec | more, "status": status}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """A node that a pod fills for half an hour, and pods of two namespaces that wait."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": AMOUNTS}}
    pods = [
        a_raw_pod("busy", 3, "30m", nodeName="n"),
        a_raw_pod("large", 4, "1h"),
        a_raw_pod("hidden", 4, "2h", "other"),
    ]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, *pods]}))
    return str(path)


def eta(*words: str) -> Any:
    return CliRunner().invoke(main, ["eta", *words])


def test_a_dump_says_when_a_job_starts_by_declared_runtimes(dump: str) -> None:
    said = eta("large", "-n", "default", "--cluster", dump)
    assert said.exit_code == 0, said.output
    assert said.output.startswith("default/large\n\nPLACE    1 of 2 jobs that are tried\n")
    assert "BASIS    jobs that run: 1 with a declared runtime\n" in said.output
    page = json.loads(eta("-n", "default", "--cluster", dump, "-o", "json").stdout)
    assert [each["name"] for each in page["items"]] == ["default/large"]
    assert page["items"][0]["early"] <= page["items"][0]["likely"] <= page["items"][0]["late"]


def test_what_is_wrong_is_one_line_and_what_has_a_node_does_not_wait(dump: str) -> None:
    missing = eta("nothing", "-n", "default", "--cluster", dump)
    assert (missing.exit_code, missing.output) == (
        1,
        "Error: pod or job nothing does not exist in namespace default\n",
    )
    assert eta("a/b/c/d", "--cluster", dump).exit_code == 1
    running = eta("busy", "-n", "default", "--cluster", dump)
    assert (running.exit_code, "it does not wait in the queue" in running.output) == (0, True)


def test_the_scheduler_knows_earlier_runs(tmp_path: Path) -> None:
    def prepare(api: ApiFixture) -> None:
        ends = api.fixture.ledger.nodes.pods.expected_ends
        for _ in range(5):
            ends.memory.observe(ends._records[0].identity, 3600.0, None)  # type: ignore[arg-type]

    one, table, refused, jobs = commanded(
        tmp_path,
        ["member", "eta", "train"],
        ["member", "eta", "-n", "ml", "-o", "wide"],
        ["member", "eta", "web/shop"],
        ["member", "top", "jobs", "-n", "ml", "-o", "wide"],
        prepare=prepare,
    )
    assert one.exit_code == 0, one.output
    assert "WAITS    0/2 nodes are available" in one.output
    assert "BASIS    jobs that run: 1 with earlier runs" in one.output
    assert table.output.startswith("ml/train\n")
    assert refused.exit_code == 1
    assert "EXPECTED" in jobs.output
