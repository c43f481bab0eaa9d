"""Claims that are made from templates, and freed after their pods."""

from typing import Any

import pytest

from tests.sim.controllers.controller_fixture import CORE, ControllerFixture

RESOURCE = "/apis/resource.k8s.io/v1"
GROUPS = "/apis/scheduling.k8s.io/v1beta1"
GATES = ("GenericWorkload", "DRAWorkloadResourceClaims")
FINALIZER = "resource.kubernetes.io/delete-protection"


def with_template(name: str = "one", gates: tuple[str, ...] = ()) -> ControllerFixture:
    it = ControllerFixture(gates=gates)
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    spec = {"metadata": {"labels": {"of": name}}, "spec": {"devices": devices}}
    it.apply(RESOURCE, "resourceclaimtemplates", name, spec)
    return it


def a_claiming_pod(it: ControllerFixture, name: str = "p", group: str = "", **source: str) -> dict[str, Any]:
    claims = [{"name": "gpu", **(source or {"resourceClaimTemplateName": "one"})}]
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i:1"}], "resourceClaims": claims}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return it.apply(CORE, "pods", name, spec)


def a_group(it: ControllerFixture, name: str = "g") -> dict[str, Any]:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    return it.apply(GROUPS, "podgroups", name, {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims})


def given_names(it: ControllerFixture, *pods: str) -> list[str]:
    statuses = [it.get(CORE, "pods", pod).get("status", {}).get("resourceClaimStatuses", []) for pod in pods]
    return [each["resourceClaimName"] for status in statuses for each in status]


def claims(it: ControllerFixture) -> list[dict[str, Any]]:
    return it.items(RESOURCE, "resourceclaims")


def allocate(it: ControllerFixture, claim: dict[str, Any], *users: dict[str, Any]) -> None:
    """As a scheduler does it."""
    name, where = claim["metadata"]["name"], "resourceclaims"
    it.patch(RESOURCE, where, name, {"metadata": {"finalizers": [FINALIZER]}})
    reserved = [{"resource": "pods", "name": u["metadata"]["name"], "uid": u["metadata"]["uid"]} for u in users]
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": reserved}
    it.patch(RESOURCE, where, f"{name}/status", {"status": status})


def test_a_pod_gets_a_claim_of_its_template() -> None:
    it = with_template()
    pod = a_claiming_pod(it)
    it.settle()
    (made,) = claims(it)
    assert made["metadata"]["name"].startswith("p-gpu-")
    assert made["metadata"]["labels"] == {"of": "one"}
    assert made["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    assert made["spec"]["devices"]["requests"][0]["name"] == "r"
    told = it.get(CORE, "pods", "p")["status"]["resourceClaimStatuses"]
    assert told == [{"name": "gpu", "resourceClaimName": made["metadata"]["name"]}]
    assert it.settle() == 0


def test_a_pod_waits_for_its_template() -> None:
    it = ControllerFixture()
    a_claiming_pod(it)
    it.settle()
    assert not claims(it)
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
    it.apply(RESOURCE, "resourceclaimtemplates", "one", spec)
    it.settle()
    assert len(claims(it)) == 1


def test_a_claim_that_was_made_before_a_restart_is_found_again() -> None:
    it = with_template()
    a_claiming_pod(it)
    it.settle()
    it.patch(CORE, "pods", "p/status", {"status": {"resourceClaimStatuses": None}})
    it.restart()
    it.settle()
    assert len(claims(it)) == 1
    assert it.get(CORE, "pods", "p")["status"]["resourceClaimStatuses"]


def test_f43_the_claim_of_a_pod_that_is_deleted_goes_with_its_devices() -> None:
    it = with_template()
    pod = a_claiming_pod(it)
    it.settle()
    allocate(it, claims(it)[0], pod)
    it.settle()
    assert claims(it)[0]["status"]["reservedFor"]
    it.end("p")
    it.settle()
    assert not claims(it)


def test_f43_the_claim_of_a_pod_that_has_ended_goes_with_its_devices() -> None:
    it = with_template()
    pod = a_claiming_pod(it)
    it.settle()
    allocate(it, claims(it)[0], pod)
    it.bind("p")
    it.finish("p")
    it.settle()
    assert not claims(it)


def test_a_shared_claim_loses_its_devices_with_the_last_user() -> None:
    it = ControllerFixture()
    it.apply(RESOURCE, "resourceclaims", "shared", {"devices": {"requests": []}})
    users = [a_claiming_pod(it, name, resourceClaimName="shared") for name in ("a", "b")]
    allocate(it, claims(it)[0], *users)
    it.settle()
    it.end("a")
    it.settle()
    (left,) = claims(it)
    assert [each["name"] for each in left["status"]["reservedFor"]] == ["b"]
    assert left["status"]["allocation"]
    it.end("b")
    it.settle()
    (left,) = claims(it)
    assert left["status"] == {}
    assert not left["metadata"].get("finalizers")


@pytest.mark.parametrize("group_first", [pytest.param(True, id="PodGroup first"), pytest.param(False, id="pods first")])
def test_pods_get_the_claim_of_their_pod_group(group_first: bool) -> None:
    it = with_template(gates=GATES)
    if group_first:
        a_group(it)
        it.settle()
    for name in ("a", "b"):
        a_claiming_pod(it, name, "g")
    it.settle()
    if not group_first:
        assert not claims(it)
        a_group(it)
        it.settle()
    (made,) = claims(it)
    assert made["metadata"]["name"].startswith("g-gpu-")
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["apiVersion"], owner["controller"]) == ("PodGroup", "scheduling.k8s.io/v1beta1", True)
    listed = [{"name": "gpu", "resourceClaimName": made["metadata"]["name"]}]
    assert it.get(GROUPS, "podgroups", "g")["status"]["resourceClaimStatuses"] == listed
    assert given_names(it, "a", "b") == [made["metadata"]["name"]] * 2
    assert it.settle() == 0


def test_a_pod_has_a_claim_of_its_own_if_its_pod_group_lists_another() -> None:
    it = with_template(gates=GATES)
    a_group(it)
    it.apply(RESOURCE, "resourceclaimtemplates", "two", {"spec": {"devices": {"requests": []}}})
    a_claiming_pod(it, "a", "g", resourceClaimTemplateName="two")
    it.settle()
    (name,) = given_names(it, "a")
    assert name.startswith("a-gpu-")
    assert len(claims(it)) == 2


def test_without_the_gate_a_pod_group_has_no_claims() -> None:
    it = with_template(gates=GATES[:1])
    assert "resourceClaims" not in a_group(it)["spec"]
    a_claiming_pod(it, "a", "g")
    it.settle()
    (name,) = given_names(it, "a")
    assert name.startswith("a-gpu-")


def test_the_claim_of_a_pod_group_outlives_its_pods_and_goes_with_the_group() -> None:
    it = with_template(gates=GATES)
    group = a_group(it)
    a_claiming_pod(it, "a", "g")
    it.settle()
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": group["metadata"]["uid"]}
    name = claims(it)[0]["metadata"]["name"]
    it.patch(RESOURCE, "resourceclaims", name, {"metadata": {"finalizers": [FINALIZER]}})
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": [user]}
    it.patch(RESOURCE, "resourceclaims", f"{name}/status", {"status": status})
    it.end("a")
    it.settle()
    assert claims(it)[0]["status"]["reservedFor"] == [user]
    it.delete(GROUPS, "podgroups", "g")
    it.settle()
    assert not claims(it)


def test_long_names_are_cut_in_both_parts() -> None:
    it = with_template(gates=GATES)
    a_group(it, "g" * 120)
    it.settle()
    (made,) = claims(it)
    assert len(made["metadata"]["name"]) <= 63
    assert "-gp" in made["metadata"]["name"] or "-g" in made["metadata"]["name"]
