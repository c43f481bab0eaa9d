"""Lists: order, selectors, pages, versions."""

from tests.contract.api import Api, a_lease, a_pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def _pods(api: Api, names: str = "cabd") -> None:
    for name in names:
        api.post("pods", a_pod(name)).ok(201)


def lists_are_in_the_order_of_names(api: Api) -> None:
    _pods(api)
    listed = api.get("pods").ok()
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert [each["metadata"]["name"] for each in listed["items"]] == ["a", "b", "c", "d"]
    assert "kind" not in listed["items"][0]


def label_selectors_select(api: Api) -> None:
    _pods(api)
    assert api.names("pods", labelSelector="app=a") == ["a"]
    assert api.names("pods", labelSelector="app==a") == ["a"]
    assert api.names("pods", labelSelector="app!=a") == ["b", "c", "d"]
    assert api.names("pods", labelSelector="app in (a,b)") == ["a", "b"]
    assert api.names("pods", labelSelector="app notin (a, b)") == ["c", "d"]
    assert api.names("pods", labelSelector="app") == ["a", "b", "c", "d"]
    assert api.names("pods", labelSelector="!app") == []
    assert api.names("pods", labelSelector="app in (a,b),app!=a") == ["b"]
    for wrong in ("a b", "a in (", "a=-", "a=b=c", ","):
        api.get("pods", f"labelSelector={wrong.replace(' ', '%20').replace('=', '%3D')}").refused(400, "BadRequest")


def field_selectors_select(api: Api) -> None:
    _pods(api)
    api.post("pods", a_pod("e", nodeName="n1")).ok(201)
    assert api.names("pods", fieldSelector="metadata.name=a") == ["a"]
    assert api.names("pods", fieldSelector="spec.nodeName=n1") == ["e"]
    assert api.names("pods", fieldSelector="spec.nodeName!=") == ["e"]
    assert api.names("pods", fieldSelector="spec.nodeName=,metadata.name!=a") == ["b", "c", "d"]
    assert api.names("pods", fieldSelector="status.phase!=Pending") == []
    usual = "spec.schedulerName=default-scheduler,spec.hostNetwork=false"
    assert api.names("pods", fieldSelector=usual) == list("abcde")
    api.get("pods", "fieldSelector=foo%3Dbar").refused(400, "BadRequest", "field label not supported: foo")
    api.get("pods", "fieldSelector=foo").refused(400, "BadRequest")
    api.get("nodes", "fieldSelector=metadata.namespace%3Dx").refused(400, "BadRequest")


def pages_are_of_one_moment(api: Api) -> None:
    _pods(api, "abcdef")
    first = api.get("pods", "limit=2").ok()
    assert [each["metadata"]["name"] for each in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 4
    api.delete("pods/c").ok()
    api.post("pods", a_pod("cc")).ok(201)
    second = api.get("pods", f"limit=3&continue={first['metadata']['continue']}").ok()
    assert [each["metadata"]["name"] for each in second["items"]] == ["c", "d", "e"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    last = api.get("pods", f"limit=3&continue={second['metadata']['continue']}").ok()
    assert [each["metadata"]["name"] for each in last["items"]] == ["f"]
    assert not last["metadata"].get("continue")
    assert api.names("pods") == ["a", "b", "cc", "d", "e", "f"]


def the_past_can_be_listed(api: Api) -> None:
    _pods(api, "ab")
    version = api.version("pods")
    api.post("pods", a_pod("c")).ok(201)
    api.delete("pods/a").ok()
    assert api.names("pods", resourceVersion=version, resourceVersionMatch="Exact") == ["a", "b"]
    assert api.names("pods", resourceVersion=version, resourceVersionMatch="NotOlderThan") == ["b", "c"]
    assert api.names("pods", resourceVersion="0") == ["b", "c"]


def options_are_checked(api: Api) -> None:
    api.get("pods", "resourceVersion=x").refused(400, "BadRequest")
    api.get("pods", "resourceVersionMatch=Exact").refused(422, "Invalid", field="resourceVersionMatch")
    api.get("pods", "resourceVersion=1&resourceVersionMatch=Foo").refused(422, "Invalid")
    api.get("pods", "resourceVersion=0&resourceVersionMatch=Exact").refused(422, "Invalid")
    api.get("pods", "sendInitialEvents=true").refused(422, "Invalid", field="sendInitialEvents")
    api.get("pods", "limit=x").refused(400, "BadRequest")
    api.get("pods", "continue=x").refused(400, "BadRequest")
    assert api.get("pods", "limit=-1").ok()["items"] == []


def the_future_cannot_be_listed(api: Api) -> None:
    refused = api.get("pods", "resourceVersion=999999999").refused(504, "Timeout")
    assert refused.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def all_namespaces_are_listed_together(api: Api) -> None:
    api.post("leases", a_lease("only-here")).ok(201)
    query = "fieldSelector=metadata.name%3Donly-here"
    found = api.get(f"/apis/coordination.k8s.io/v1/leases?{query}").ok()["items"]
    assert api.namespace in [each["metadata"]["namespace"] for each in found]


def tables_are_for_people(api: Api) -> None:
    api.post("pods", a_pod("a", nodeName="n1")).ok(201)
    table = api.get("pods", accept=TABLE).ok()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    columns = [each["name"] for each in table["columnDefinitions"]]
    assert columns[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    row = dict(zip(columns, table["rows"][0]["cells"], strict=True))
    seen = {key: row[key] for key in ("Name", "Ready", "Status", "Restarts", "Node", "IP", "Readiness Gates")}
    expected = {"Name": "a", "Ready": "0/1", "Status": "Pending", "Restarts": "0", "Node": "n1"}
    assert seen == {**expected, "IP": "<none>", "Readiness Gates": "<none>"}
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    one = api.get("pods/a", accept=TABLE).ok()
    assert one["rows"][0]["cells"][0] == "a"
