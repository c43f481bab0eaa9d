"""The lines STARTS AT ONCE IF of `kubenexus explain`, from a file that kubectl printed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.explain.test_explain_gangs import member, racked
from tests.explain.test_explanation import node, pod, run

OURS: dict[str, Any] = {"schedulerName": "kubenexus-scheduler"}
LINE = "STARTS AT ONCE IF  "


def lines(tmp_path: Path, items: list[Any], key: str = "web/a") -> list[str]:
    result = run(tmp_path, items, key)
    assert result.exit_code == 2, result.output
    return [line.removeprefix(LINE) for line in result.output.splitlines() if line.startswith(LINE)]


@pytest.mark.parametrize(
    ("items", "first"),
    [
        pytest.param(
            [node("n", unschedulable=True), pod("a", "1")],
            "node n is uncordoned",
            id="a cordoned node",
        ),
        pytest.param(
            [node("n", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]), pod("a", "1")],
            "node n loses the taint node.kubernetes.io/not-ready:NoExecute",
            id="a node that is not ready is not to be tolerated",
        ),
        pytest.param(
            [node("n", taints=[{"key": "gpu", "value": "a", "effect": "NoSchedule"}]), pod("a", "1")],
            "it tolerates gpu=a:NoSchedule",
            id="a taint of the operator's own",
        ),
        pytest.param(
            [node("n"), pod("a", "1", nodeSelector={"disk": "ssd", "kubernetes.io/hostname": "n"})],
            "without node selector disk=ssd",
            id="the one selector that keeps it off, not the other",
        ),
        pytest.param(
            [node("n"), pod("b", "3", nodeName="n", priority=7), pod("a", "2", priority=3, **OURS)],
            "its priority is at least 8; then these give way: web/b",
            id="a higher priority, and which jobs give way",
        ),
        pytest.param(
            [node("n"), pod("a", "2", nodeSelector={"x": "y"}, tolerations=[]), node("m", "1")],
            "without node selector x=y",
            id="what the pod gives up comes before hardware",
        ),
    ],
)
def test_what_would_help_most_cheaply(tmp_path: Path, items: list[Any], first: str) -> None:
    assert lines(tmp_path, items)[0] == first


def test_hardware_comes_last_and_is_exact(tmp_path: Path) -> None:
    items = [node("big"), node("small", "1"), pod("b", "3500m", nodeName="big"), pod("a", "2200m")]
    assert lines(tmp_path, items) == ["node small has 1200m cpu more", "there is 1 more node like big, empty"]


def test_a_gang_may_stretch_shrink_or_get_capacity_where_it_comes_closest(tmp_path: Path) -> None:
    nodes = [racked("a0", "a"), racked("b0", "b"), racked("b1", "b", "1")]
    assert lines(tmp_path, [*nodes, *(member(i, near="rack") for i in range(4))], "web/llama-2") == [
        "the gang's required topology rack is only preferred",
        "the gang starts with 3 members instead of 4",
        "node b0 has 1 cpu more",
        "there is 1 more node like b0, empty, in rack b",
    ]


def test_two_obstacles_at_once_are_said_to_need_more_than_one_change(tmp_path: Path) -> None:
    items = [node("n", "1", unschedulable=True), pod("a", "2", nodeSelector={"disk": "ssd"})]
    assert lines(tmp_path, items) == ["no single change was found that would do"]


def test_a_job_that_is_placed_or_held_back_has_no_such_lines(tmp_path: Path) -> None:
    assert LINE not in run(tmp_path, [node("n"), pod("a", "1")], "web/a").output
    assert LINE not in run(tmp_path, [node("n"), pod("a", "1", schedulingGates=[{"name": "g"}])], "web/a").output


def test_the_json_has_them_as_data(tmp_path: Path) -> None:
    result = run(tmp_path, [node("n", "1"), pod("a", "2")], "web/a", "-o", "json")
    found = json.loads(result.output)["starts_if"]
    assert found["complete"]
    assert found["decisions"] <= 96
    assert found["suggestions"][0] == {
        "kind": "capacity",
        "text": "node n has 1 cpu more",
        "nodes": ["n"],
        "amounts": [{"resource": "cpu", "lacking": 1000}],
    }
