"""`kubenexus explain` for members of gangs: the whole gang is planned, and what it lacks is said."""

import json
from pathlib import Path
from typing import Any

from tests.explain.test_explanation import node, pod, run

RACK = "network.kubenexus.io/rack-id"
NAME = "pod-group.scheduling.kubenexus.io/name"
LEAST = "pod-group.scheduling.kubenexus.io/min-available"


def racked(name: str, rack: str, cpu: str = "2") -> dict[str, Any]:
    made = node(name, cpu)
    made["metadata"]["labels"][RACK] = rack
    return made


def member(number: int, least: int = 4, near: str = "", **spec: Any) -> dict[str, Any]:
    made = pod(f"llama-{number}", "1", **spec)
    made["metadata"]["labels"] = {NAME: "llama", LEAST: str(least)}
    made["metadata"]["annotations"] = {"kueue.x-k8s.io/podset-required-topology": near} if near else {}
    return made


def test_a_gang_that_does_not_fit_shows_its_certificate(tmp_path: Path) -> None:
    nodes = [racked("a0", "a"), racked("b0", "b"), racked("b1", "b", "1")]
    gang = [member(i, near="rack") for i in range(4)]
    result = run(tmp_path, [*nodes, *gang], "web/llama-2")
    assert result.exit_code == 2
    assert "GANG     web/llama   4 wait, 0 have a node, at least 4 run together" in result.output
    assert "WHY      0/3 nodes are available: 3 of at least 4 members fit in rack b" in result.output
    assert "CLOSEST  rack b: 3 of 4 fit" in result.output
    assert "LACKING  1 cpu for 1 more" in result.output


def test_a_gang_that_fits_shows_where_its_members_go(tmp_path: Path) -> None:
    nodes = [racked("a0", "a"), racked("b0", "b"), racked("b1", "b")]
    result = run(tmp_path, [*nodes, *(member(i, near="rack") for i in range(4))], "web/llama-2")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert sum(line.startswith("web/llama-") and line.split()[-1] in ("b0", "b1") for line in lines) == 4
    assert any(line.startswith("NODE     b") for line in lines)


def test_the_others_stay_where_they_are_and_this_one_is_taken_off(tmp_path: Path) -> None:
    gang = [member(i, nodeName="b0" if i < 2 else "b1", near="rack") for i in range(4)]
    result = run(tmp_path, [racked("a0", "a", "9"), racked("b0", "b"), racked("b1", "b"), *gang], "web/llama-3")
    assert result.exit_code == 0
    assert "0 wait, 4 have a node, at least 4 run together" in result.output
    assert "NODE     b1" in result.output


def test_a_gang_that_is_not_complete_says_how_many_are_there(tmp_path: Path) -> None:
    result = run(tmp_path, [node("n", "9"), member(0), member(1)], "web/llama-0")
    assert result.exit_code == 2
    assert "WHY      waiting for minCount pods from a gang to appear in scheduling queue: " in result.output
    assert "gang web/llama has 2 of at least 4" in result.output


def test_members_that_ended_or_are_being_deleted_do_not_count(tmp_path: Path) -> None:
    gang = [member(i) for i in range(4)]
    gang[1]["status"] = {"phase": "Succeeded"}
    gang[2]["metadata"]["deletionTimestamp"] = "2026-11-16T00:00:00Z"
    result = run(tmp_path, [node("n", "9"), *gang], "web/llama-0")
    assert "gang web/llama has 2 of at least 4" in result.output


def test_who_is_more_than_the_gang_needs_may_have_to_wait(tmp_path: Path) -> None:
    result = run(tmp_path, [node("n", "3"), *(member(i, least=2) for i in range(4))], "web/llama-3")
    assert result.exit_code == 2
    assert "WHY      3 others of the gang start; there is no room for this one beside them" in result.output


def test_a_pod_group_in_the_file_has_the_number(tmp_path: Path) -> None:
    gang = [pod(f"m{i}", "1", schedulingGroup={"podGroupName": "g"}) for i in range(3)]
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "web"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    missing = run(tmp_path, [node("n", "2"), *gang], "web/m0")
    assert "WHY      waiting for PodGroup.scheduling.k8s.io web/g to appear" in missing.output
    result = run(tmp_path, [node("n", "2"), *gang, group], "web/m0", "-o", "json")
    certificate = json.loads(result.output)["decision"]["certificate"]
    assert (certificate["needed"], certificate["fit"]) == (3, 2)


def test_a_number_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    odd = member(0)
    odd["metadata"]["labels"][LEAST] = "many"
    result = run(tmp_path, [node("n", "9"), odd], "web/llama-0")
    assert result.exit_code == 2
    assert f"WHY      label {LEAST}: must be a whole number from 1, not 'many'" in result.output


# --- what a configuration says --------------------------------------------------------------------------------------

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: kubenexus-scheduler
  pluginConfig:
  - name: Coscheduling
    args: {topologyDefaults: [{namespaces: [web], required: rack}]%s}
"""


def configured(folder: Path, more: str = "") -> str:
    file = folder / "config.yaml"
    file.write_text(CONFIG % more)
    return f"--config={file}"


OURS: dict[str, Any] = {"schedulerName": "kubenexus-scheduler"}


def test_a_gang_that_says_nothing_is_as_close_as_the_configuration_wants_it(tmp_path: Path) -> None:
    items = [racked("a0", "a"), racked("b0", "b"), *(member(i, **OURS) for i in range(4))]
    assert run(tmp_path, items, "web/llama-0").exit_code == 0
    result = run(tmp_path, items, "web/llama-0", configured(tmp_path))
    assert result.exit_code == 2
    assert "2 of at least 4 members fit in rack a" in result.output


def test_a_pod_that_is_not_the_schedulers_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, [node("n"), pod("a", "1")], "web/a", configured(tmp_path))
    assert result.exit_code == 1
    assert "pod web/a: spec.schedulerName is default-scheduler, and" in result.output
    assert "has profiles for kubenexus-scheduler" in result.output


# --- room that is kept ----------------------------------------------------------------------------------------------

KEPT = "WHY      0/2 nodes are available: the room that is left is kept for gang web/llama, which comes first."


def aged(item: dict[str, Any], minute: int) -> dict[str, Any]:
    item["metadata"]["creationTimestamp"] = f"2026-11-16T08:{minute:02}:00Z"
    return item


def first_in_line(minute: int = 0, **spec: Any) -> list[dict[str, Any]]:
    """One of two nodes is full, and a gang waits that needs both."""
    gang = [aged(member(i, least=4, **OURS, **spec), minute) for i in range(4)]
    return [node("n0", "2"), node("n1", "2"), pod("busy", "2", nodeName="n0"), *gang]


def test_a_pod_that_waits_for_a_gang_before_it_is_told_so(tmp_path: Path) -> None:
    late = aged(pod("late", "1", **OURS), 1)
    result = run(tmp_path, [*first_in_line(), late], "web/late")
    assert result.exit_code == 2
    assert KEPT in result.output
    assert "BY       GangReservation" in result.output


def test_who_comes_first_or_keeps_to_kube_schedulers_order_does_not_wait(tmp_path: Path) -> None:
    early, urgent = aged(pod("early", "1", **OURS), 0), aged(pod("urgent", "1", **OURS, priority=1000), 2)
    assert run(tmp_path, [*first_in_line(minute=1), early], "web/early").exit_code == 0
    assert run(tmp_path, [*first_in_line(), urgent], "web/urgent").exit_code == 0
    foreign = aged(pod("foreign", "1"), 1)
    assert run(tmp_path, [*first_in_line(), foreign], "web/foreign").exit_code == 0
    late = aged(pod("late", "1", **OURS), 1)
    nothing_kept = configured(tmp_path, ", reservationSeconds: 0")
    assert run(tmp_path, [*first_in_line(), late], "web/late", nothing_kept).exit_code == 0


def test_a_gang_keeps_nothing_from_more_priority_however_long_it_has_waited(tmp_path: Path) -> None:
    late = aged(pod("late", "1", **OURS, priority=150), 59)
    assert run(tmp_path, [*first_in_line(), late], "web/late").exit_code == 0
    assert run(tmp_path, [*first_in_line(priority=150), late], "web/late").exit_code == 2


def test_who_does_not_say_its_age_has_just_come(tmp_path: Path) -> None:
    items = [*first_in_line(), aged(pod("newest", "1", nodeName="n0"), 1), pod("late", "1", **OURS)]
    assert KEPT in run(tmp_path, items, "web/late").output


def test_a_gang_is_as_old_as_its_oldest_member_that_waits_behind_gates_too(tmp_path: Path) -> None:
    gated = aged(member(9, **OURS, schedulingGates=[{"name": "wait"}]), 0)
    early = aged(pod("early", "1", **OURS), 1)
    assert run(tmp_path, [*first_in_line(minute=2), early], "web/early").exit_code == 0
    assert KEPT in run(tmp_path, [*first_in_line(minute=2), gated, early], "web/early").output
