"""Claims that are made from templates, and freed after their pods."""

from typing import Any

from tests.sim.controllers.controller_fixture import CORE, ControllerFixture

RESOURCE = "/apis/resource.k8s.io/v1"
FINALIZER = "resource.kubernetes.io/delete-protection"


def with_template(name: str = "one") -> ControllerFixture:
    it = ControllerFixture()
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    spec = {"metadata": {"labels": {"of": name}}, "spec": {"devices": devices}}
    it.apply(RESOURCE, "resourceclaimtemplates", name, spec)
    return it


def a_claiming_pod(it: ControllerFixture, name: str = "p", **source: str) -> dict[str, Any]:
    claims = [{"name": "gpu", **(source or {"resourceClaimTemplateName": "one"})}]
    return it.apply(CORE, "pods", name, {"containers": [{"name": "c", "image": "i:1"}], "resourceClaims": claims})


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
