"""What controllers do for everybody: owned objects follow their owners, namespaces are emptied, kinds come and go."""

from typing import Any

import pytest

from tests.contract.api import WIDGETS, a_widget
from tests.sim.server.boxes import PODS, Box, pod

SETS = "/apis/apps/v1/namespaces/default/replicasets"
WIDGET_PATH = "/apis/contract.kubenexus.io/v1/namespaces/default/widgets"


def owner(box: Box, name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = box.do("POST", SETS, {"metadata": {"name": name}, "spec": spec})
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": made["metadata"]["uid"]}


def names(box: Box, path: str = PODS) -> list[str]:
    return [item["metadata"]["name"] for item in box.do("GET", path)["items"]]


@pytest.mark.parametrize(("policy", "left"), [("Background", []), ("Foreground", []), ("Orphan", ["a", "b"])])
def test_dependents_follow_their_owner(policy: str, left: list[str]) -> None:
    box = Box()
    owned = [owner(box, "one")]
    for name in ("a", "b"):
        box.do("POST", PODS, pod(name, ownerReferences=owned))
    box.do("DELETE", f"{SETS}/one", {"propagationPolicy": policy})
    box.server.tidy()
    assert names(box) == left
    assert names(box, SETS) == []
    if left:
        assert "ownerReferences" not in box.do("GET", f"{PODS}/a")["metadata"]


def test_an_object_with_another_owner_stays() -> None:
    box = Box()
    both = [owner(box, "one"), owner(box, "two")]
    box.do("POST", PODS, pod("a", ownerReferences=both))
    box.do("DELETE", f"{SETS}/one", {"propagationPolicy": "Background"})
    box.server.tidy()
    assert [each["name"] for each in box.do("GET", f"{PODS}/a")["metadata"]["ownerReferences"]] == ["two"]


def test_a_namespace_waits_for_its_pods() -> None:
    box = Box()
    box.do("POST", "/api/v1/namespaces", {"metadata": {"name": "short"}})
    path = "/api/v1/namespaces/short/pods"
    box.do("POST", path, pod("a"))
    bound = pod("b")
    bound["spec"]["nodeName"] = "n1"
    box.do("POST", path, bound)
    box.do("DELETE", "/api/v1/namespaces/short")
    box.server.tidy()
    assert names(box, path) == ["b"]  # a node agent has to finish it
    assert box.do("GET", "/api/v1/namespaces/short")["status"]["phase"] == "Terminating"
    box.do("DELETE", f"{path}/b?gracePeriodSeconds=0")
    box.server.tidy()
    assert box.ask("GET", "/api/v1/namespaces/short").code == 404


def test_a_custom_kind_goes_with_its_definition() -> None:
    box = Box()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert box.ask("GET", WIDGET_PATH).code == 404
    made = box.do("POST", path, WIDGETS)
    assert {each["type"]: each["status"] for each in made["status"]["conditions"]}["Established"] == "True"
    box.do("POST", WIDGET_PATH, a_widget("a", size=1))
    events = box.watch(f"{WIDGET_PATH}?watch=1")
    box.do("DELETE", f"{path}/{WIDGETS['metadata']['name']}")
    assert [each["type"] for each in events] == ["ADDED", "DELETED"]
    assert box.ask("GET", WIDGET_PATH).code == 404
