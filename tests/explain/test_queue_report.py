"""`kubenexus top queues`: what each queue uses, from a dump."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kubenexus.cli import main

API = "scheduling.kubenexus.io/v1alpha1"


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def pod(name: str, namespace: str, cpu: int, node: str = "") -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    spec = {"containers": [container]} | ({"nodeName": node} if node else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "10", "memory": "10Gi", "pods": "110"}},
}
ITEMS = [
    NODE,
    queue("all"),
    queue("ml", parent="all", weight=2, guaranteed={"cpu": 2}, limit={"cpu": 6}, namespaces=["a"]),
    queue("web", parent="all", guaranteed={"cpu": 4}, namespaces=["b"]),
    {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "volcano"}, "spec": {}},
    pod("p", "a", 4, "n"),
    pod("q", "b", 1, "n"),
    pod("waits", "a", 2),
]


def top(tmp_path: Path, items: list[Any], *options: str) -> str:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    result = CliRunner().invoke(main, ["top", "queues", "--cluster", str(dump), *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_table_has_each_queue_below_its_parent(tmp_path: Path) -> None:
    assert top(tmp_path, ITEMS).splitlines() == [
        "QUEUE    WEIGHT  SHARE               RUNNING  WAITING  RESOURCE  USED  GUARANTEED  BORROWED  LIMIT",
        "all      1       83.3% of guarantee  2        1        cpu       5     6           -         -",
        "  ml     2       10.0%               1        1        cpu       4     2           2         6",
        "  web    1       25.0% of guarantee  1        0        cpu       1     4           -         -",
        "default  1       0.0%                0        0        -         -     -           -         -",
    ]


def test_the_same_as_data(tmp_path: Path) -> None:
    queues = json.loads(top(tmp_path, ITEMS, "-o", "json"))["queues"]
    assert [each["queue"] for each in queues] == ["all", "ml", "web", "default"]
    assert queues[1] == {
        "queue": "ml",
        "level": 1,
        "weight": 2,
        "share": 0.1,
        "below_guarantee": False,
        "running": 1,
        "waiting": 1,
        "resources": {"cpu": {"used": 4000, "guaranteed": 2000, "borrowed": 2000, "limit": 6000}},
    }


def test_without_queues_there_is_nothing_to_show(tmp_path: Path) -> None:
    assert top(tmp_path, [NODE]) == "no queues\n"
