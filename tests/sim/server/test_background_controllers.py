"""What controllers do for everybody: owned objects follow their owners, namespaces are emptied, kinds come and go."""

from typing import Any

import pytest

from tests.contract.api import WIDGETS, a_widget
from tests.sim.server.server_fixture import PODS, ServerFixture, pod

SETS = "/apis/apps/v1/namespaces/default/replicasets"
WIDGET_PATH = "/apis/contract.kubenexus.io/v1/namespaces/default/widgets"


def owner(server: ServerFixture, name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = server.do("POST", SETS, {"metadata": {"name": name}, "spec": spec})
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": made["metadata"]["uid"]}


def names(server: ServerFixture, path: str = PODS) -> list[str]:
    return [item["metadata"]["name"] for item in server.do("GET", path)["items"]]


@pytest.mark.parametrize(("policy", "left"), [("Background", []), ("Foreground", []), ("Orphan", ["a", "b"])])
def test_dependents_follow_their_owner(policy: str, left: list[str]) -> None:
    server = ServerFixture()
    owned = [owner(server, "one")]
    for name in ("a", "b"):
        server.do("POST", PODS, pod(name, ownerReferences=owned))
    server.do("DELETE", f"{SETS}/one", {"propagationPolicy": policy})
    server.server.tidy()
    assert names(server) == left
    assert names(server, SETS) == []
    if left:
        assert "ownerReferences" not in server.do("GET", f"{PODS}/a")["metadata"]


def test_an_object_with_another_owner_stays() -> None:
    server = ServerFixture()
    both = [owner(server, "one"), owner(server, "two")]
    server.do("POST", PODS, pod("a", ownerReferences=both))
    server.do("DELETE", f"{SETS}/one", {"propagationPolicy": "Background"})
    server.server.tidy()
    assert [each["name"] for each in server.do("GET", f"{PODS}/a")["metadata"]["ownerReferences"]] == ["two"]


def test_a_namespace_waits_for_its_pods() -> None:
    server = ServerFixture()
    server.do("POST", "/api/v1/namespaces", {"metadata": {"name": "short"}})
    path = "/api/v1/namespaces/short/pods"
    server.do("POST", path, pod("a"))
    bound = pod("b")
    bound["spec"]["nodeName"] = "n1"
    server.do("POST", path, bound)
    server.do("DELETE", "/api/v1/namespaces/short")
    server.server.tidy()
    assert names(server, path) == ["b"]  # a node agent has to finish it
    assert server.do("GET", "/api/v1/namespaces/short")["status"]["phase"] == "Terminating"
    server.do("DELETE", f"{path}/b?gracePeriodSeconds=0")
    server.server.tidy()
    assert server.ask("GET", "/api/v1/namespaces/short").code == 404


def test_a_custom_kind_goes_with_its_definition() -> None:
    server = ServerFixture()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert server.ask("GET", WIDGET_PATH).code == 404
    made = server.do("POST", path, WIDGETS)
    assert {each["type"]: each["status"] for each in made["status"]["conditions"]}["Established"] == "True"
    server.do("POST", WIDGET_PATH, a_widget("a", size=1))
    events = server.watch(f"{WIDGET_PATH}?watch=1")
    server.do("DELETE", f"{path}/{WIDGETS['metadata']['name']}")
    assert [each["type"] for each in events] == ["ADDED", "DELETED"]
    assert server.ask("GET", WIDGET_PATH).code == 404
