"""`kubenexus explain`, used as a person would: from a file that kubectl printed."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubenexus.cli import main
from kubenexus.explain.cluster_dump import read_dump
from kubenexus.explain.cluster_tables import jobs_of, queues_of


def node(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "web", "uid": name},
        "spec": {"containers": containers, **spec},
    }


def run(tmp_path: Path, items: list[Any], key: str, *options: str) -> Result:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    return CliRunner().invoke(main, ["explain", "--cluster", str(dump), "--pod", key, *options])


def test_a_pod_that_fits_is_told_its_node_and_the_scores(tmp_path: Path) -> None:
    result = run(tmp_path, [node("small", "1"), node("large", "16"), pod("a", "2")], "web/a")
    assert result.exit_code == 0
    assert "NODE     large" in result.output
    assert "1 of 2 nodes fit" in result.output
    assert "REFUSED  1 Insufficient cpu" in result.output
    assert "NodeResourcesFit" in result.output


def test_a_pod_whose_amounts_cannot_be_read_is_told_which(tmp_path: Path) -> None:
    result = run(tmp_path, [node("n"), pod("a", "1x")], "web/a")
    assert result.exit_code == 2
    assert "spec.containers[0].resources.requests[cpu]: '1x' is not a quantity" in result.output


def test_a_pod_that_waits_is_told_why_and_what_came_closest(tmp_path: Path) -> None:
    items = [node("full"), node("cordoned", unschedulable=True), pod("big", "3500m", nodeName="full"), pod("a", "1")]
    result = run(tmp_path, items, "web/a")
    assert result.exit_code == 2
    assert "WHY      0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable." in result.output
    assert "NEAREST  full: Insufficient cpu; lacks 500m cpu" in result.output


@pytest.mark.parametrize(
    ("key", "said"),
    [
        pytest.param("web/b", "pod b does not exist in namespace web of DUMP", id="other pods of its namespace do"),
        pytest.param("x/b", "pod b does not exist in namespace x: DUMP has no pod of that namespace", id="none does"),
        pytest.param(
            "a",
            "pod a does not exist in namespace default: DUMP has no pod of that namespace; did you mean web/a?",
            id="without a namespace it is in default, as with kubectl",
        ),
        pytest.param(
            "web/trian-0",
            "pod trian-0 does not exist in namespace web of DUMP; did you mean train-0?",
            id="similar names of its namespace are told",
        ),
        pytest.param("a/b/c", "expected NAME or NAMESPACE/NAME, not 'a/b/c'", id="too many parts"),
        pytest.param("web/", "expected NAME or NAMESPACE/NAME, not 'web/'", id="no name"),
    ],
)
def test_a_pod_that_does_not_exist(tmp_path: Path, key: str, said: str) -> None:
    result = run(tmp_path, [node("one"), pod("a", "1"), pod("train-0", "1"), pod("train-1", "1")], key)
    assert result.exit_code == 1
    assert result.output.replace(str(tmp_path / "dump.json"), "DUMP") == f"Error: {said}\n"


def test_a_bound_pod_is_explained_as_if_it_waited(tmp_path: Path) -> None:
    result = run(tmp_path, [node("one"), pod("a", "3", nodeName="one")], "web/a")
    assert result.exit_code == 0
    assert "NODE     one" in result.output


def test_a_bound_pod_is_told_its_node_before_all_else(tmp_path: Path) -> None:
    items = [node("one"), node("two", "16"), pod("a", "3", nodeName="one"), pod("b", "1")]
    first, second, kind, tenant, third, *_ = run(tmp_path, items, "web/a").output.splitlines()
    assert (first, second) == ("web/a", "BOUND    one   below: where it would go if it waited now")
    assert (kind[:9], tenant[:9]) == ("KIND     ", "TENANT   ")
    assert third.startswith("NODE     two")
    assert json.loads(run(tmp_path, items, "web/a", "-o", "json").output)["bound"] == "one"
    assert "BOUND" not in run(tmp_path, items, "web/b").output


def test_the_same_as_json_for_other_programs(tmp_path: Path) -> None:
    result = run(tmp_path, [node("one"), pod("a", "1")], "web/a", "-o", "json")
    told = json.loads(result.output)
    assert told["decision"]["placements"][0]["node"] == "one"
    assert {score["plugin"] for score in told["best"][0]["scores"]} >= {"NodeResourcesFit", "TaintToleration"}


@pytest.mark.parametrize(
    ("labels", "namespace", "lines"),
    [
        pytest.param(
            {"workload.kubenexus.io/type": "training"},
            {"tenant.kubenexus.io/tier": "gold", "tenant.kubenexus.io/name": "research"},
            [
                "KIND     training (key workload.kubenexus.io/type)",
                "TENANT   research, gold (namespace label)",
            ],
            id="both from labels",
        ),
        pytest.param(
            {"tenant.kubenexus.io/tier": "gold", "workload.kubenexus.io/preemptible": "true"},
            {"scheduling.kubenexus.io/tier": "silver"},
            [
                "KIND     service (no mark of another kind), preemptible",
                "TENANT   web, silver (namespace label; gold of the pod does not count)",
            ],
            id="a pod does not raise its own tier",
        ),
        pytest.param(
            {"tenant.kubenexus.io/tier": "bronze"},
            {"tenant.kubenexus.io/tier": "gold"},
            ["TENANT   web, bronze (key tenant.kubenexus.io/tier of the pod)"],
            id="a pod lowers its own tier",
        ),
        pytest.param({}, {}, ["TENANT   web, bronze (default)"], id="a namespace without a tier"),
        pytest.param(
            {},
            {"tenant.kubenexus.io/tier": "platinum"},
            [
                "TENANT   web, bronze (default; namespace: label tenant.kubenexus.io/tier: must be one of gold, "
                "silver, bronze, not 'platinum')"
            ],
            id="a namespace whose tier cannot be read",
        ),
        pytest.param(
            {},
            {"tenant.kubenexus.io/teir": "gold"},
            [
                "TENANT   web, bronze (default; namespace: label 'tenant.kubenexus.io/teir' is not known; the tier is "
                "tenant.kubenexus.io/tier)"
            ],
            id="a namespace with a key that is not known",
        ),
    ],
)
def test_what_the_pod_is_and_which_tenant_it_has(
    tmp_path: Path, labels: dict[str, str], namespace: dict[str, str], lines: list[str]
) -> None:
    waits = pod("a", "1")
    waits["metadata"]["labels"] = labels
    items = [node("one"), {"kind": "Namespace", "metadata": {"name": "web", "labels": namespace}}, waits]
    output = run(tmp_path, items, "web/a").output.splitlines()
    assert [line for line in lines if line not in output] == []
    told = json.loads(run(tmp_path, items, "web/a", "-o", "json").output)
    assert told["tenant"]["tier"] in lines[-1]
    assert told["workload"]["type"] in ("service", "training")


@pytest.mark.parametrize(
    ("labels", "lines"),
    [
        pytest.param(
            {"workload.kubenexus.io/type": "trainning"},
            [
                "label workload.kubenexus.io/type: must be one of training, inference, batch, service, interactive, "
                "not 'trainning'"
            ],
            id="a value that cannot be read",
        ),
        pytest.param(
            {"workload.kubenexus.io/tpye": "training"},
            ["label 'workload.kubenexus.io/tpye' is not known on a Pod; did you mean workload.kubenexus.io/type?"],
            id="a key that is almost one",
        ),
        pytest.param(
            {"workload.kubenexus.io/colour": "red"},
            ["label 'workload.kubenexus.io/colour' is not known on a Pod"],
            id="a key that is like no other",
        ),
        pytest.param(
            {"gpu.kubenexus.io/vram": "80Gi"},
            ["label 'gpu.kubenexus.io/vram' is not known on a Pod"],
            id="a key of nodes",
        ),
        pytest.param(
            {
                "sim.kubenexus.io/run-seconds": "3",
                "notkubenexus.io/x": "1",
                "example.com/kubenexus.io": "1",
                "app": "x",
            },
            [],
            id="keys of agents and of others",
        ),
    ],
)
def test_values_and_keys_of_the_pod_that_are_not_clear(
    tmp_path: Path, labels: dict[str, str], lines: list[str]
) -> None:
    waits = pod("a", "1")
    waits["metadata"]["labels"] = labels
    output = run(tmp_path, [node("one"), waits], "web/a").output.splitlines()
    assert [line.removeprefix("UNCLEAR  ") for line in output if line.startswith("UNCLEAR")] == lines


def test_a_dump_without_the_namespace_does_not_pretend_to_know_the_tier(tmp_path: Path) -> None:
    output = run(tmp_path, [node("one"), pod("a", "1")], "web/a").output.splitlines()
    assert "TENANT   web, bronze (default; its namespace is not known)" in output


def test_an_empty_cluster_says_what_kube_scheduler_says(tmp_path: Path) -> None:
    result = run(tmp_path, [pod("a", "1")], "web/a")
    assert result.exit_code == 2
    assert "no nodes available to schedule pods" in result.output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("not json", "not JSON as kubectl prints it", id="no JSON at all"),
        pytest.param('{"kind": "Node"}', "expected a List with `items`", id="a single object"),
        pytest.param('{"kind": "List", "items": []}', "pod a does not exist in namespace web", id="no such pod"),
    ],
)
def test_wrong_input_gets_a_clear_error(tmp_path: Path, content: str, said: str) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(content)
    result = CliRunner().invoke(main, ["explain", "--cluster", str(dump), "--pod", "web/a"])
    assert result.exit_code == 1
    assert said in result.output


def test_a_bad_object_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    items = [node("one"), pod("a", "1"), pod("bad", "no-number", nodeName="one"), {"kind": "Widget"}]
    result = run(tmp_path, items, "web/a")
    assert "Pod web/bad: spec.containers[0].resources.requests[cpu]" in result.output
    assert "1 node(s) ran a pod that could not be read" in result.output


def test_what_needs_device_claims_is_said_to_wait_for_them(tmp_path: Path) -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    result = run(tmp_path, [node("n"), pod("a", "1", resourceClaims=claims)], "web/a")
    assert result.exit_code == 2
    assert 'pod "web/a": ResourceClaim not created yet' in result.output
    backed, asking = {"kind": "DeviceClass", "metadata": {"name": "d"}, "spec": {}}, pod("b", "1")
    asking["spec"]["containers"][0]["resources"]["requests"]["deviceclass.resource.kubernetes.io/d"] = "1"
    result = run(tmp_path, [node("n"), backed, asking], "web/b")
    assert result.exit_code == 2
    assert "1 cannot allocate all claims" in result.output


def a_claim(name: str, *expressions: str) -> dict[str, Any]:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, "selectors": selectors}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "web", "uid": name}, "spec": spec}


def test_what_keeps_a_claim_from_being_allocated_is_named_with_the_number_of_nodes(tmp_path: Path) -> None:
    pool = {"name": "one", "generation": 1, "resourceSliceCount": 1}
    device = {"name": "d0", "attributes": {"model": {"string": "t4"}}}
    spec = {"driver": "gpu.example.com", "nodeName": "one", "pool": pool, "devices": [device]}
    there: list[Any] = [
        node("one"),
        node("two"),
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec},
        a_claim("any"),
        a_claim("large", 'device.attributes["gpu.example.com"].model == "h100"'),
    ]
    asking = pod("a", "1", resourceClaims=[{"name": "gpu", "resourceClaimName": "large"}])
    refused = run(tmp_path, [*there, asking], "web/a").output
    assert "2 cannot allocate all claims" in refused
    assert "CLAIMS   claim web/large, request r: claim web/large: selector #0 matches 0 devices: 2 nodes" in refused
    asking = pod("a", "1", resourceClaims=[{"name": "gpu", "resourceClaimName": "any"}])
    placed = run(tmp_path, [*there, asking], "web/a").output
    assert "CARDS    d0 (gpu.example.com, pool one)" in placed


def test_a_gated_pod_waits_for_its_gates_and_not_for_a_node(tmp_path: Path) -> None:
    gates = [{"name": "example.com/quota"}]
    result = run(tmp_path, [node("n"), pod("a", "1", schedulingGates=gates)], "web/a")
    assert result.exit_code == 2
    assert "Scheduling is blocked due to non-empty scheduling gates: [example.com/quota]" in result.output
    result = run(tmp_path, [node("n"), pod("a", "1", schedulingGates=gates, nodeName="n")], "web/a")
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        pytest.param("SchedulingGated", "queue language is at its limit", 2, id="its queue is at a limit"),
        pytest.param("SchedulingGated", "waits for job prepare to succeed", 2, id="another job comes first"),
        pytest.param("Unschedulable", "0/1 nodes are available", 0, id="a refusal of before does not count"),
        pytest.param(
            "SchedulingGated",
            "Scheduling is blocked due to non-empty scheduling gates",
            0,
            id="gates that were removed do not count",
        ),
    ],
)
def test_what_the_scheduler_holds_back_has_the_reason_of_its_condition(
    tmp_path: Path, reason: str, message: str, code: int
) -> None:
    waiting = pod("a", "1")
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    waiting["status"] = {"phase": "Pending", "conditions": [condition]}
    result = run(tmp_path, [node("n"), waiting], "web/a")
    assert result.exit_code == code
    assert (f"WHY      {message}\n" in result.output) == (code == 2)


def test_the_last_refusal_and_what_holds_a_job_back_are_in_the_table_of_jobs(tmp_path: Path) -> None:
    refusal = "0/1 nodes are available: 1 Insufficient cpu."
    jobs = {"a": ("Unschedulable", refusal), "b": ("SchedulingGated", "at its limit")}
    items = [node("n")]
    for name, (reason, message) in jobs.items():
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        items.append(pod(name, "9") | {"status": {"phase": "Pending", "conditions": [condition]}})
    dump = read_dump(json.dumps({"kind": "List", "items": items}).encode(), "a test")
    found = {each.name: (each.state, each.why) for each in jobs_of(dump, "")}
    assert found == {"web/a": ("waiting", jobs["a"][1]), "web/b": ("gated", jobs["b"][1])}
    (namespace,) = queues_of(dump, "")
    assert (namespace.active, namespace.gated) == (1, 1)
