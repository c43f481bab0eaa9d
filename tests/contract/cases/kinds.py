"""Nodes, namespaces, budgets, leases, events, workloads, custom kinds, discovery."""

from tests.contract.api import Api, a_budget, a_lease, a_pod, a_widget

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def a_new_node_is_not_ready(api: Api) -> None:
    name = api.own("n")
    capacity = {"cpu": "4000m", "memory": "1024Mi", "pods": 110}
    made = api.post("nodes", {"metadata": {"name": name}, "status": {"capacity": capacity}}).ok(201)
    assert made["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert made["status"]["allocatable"] == {"cpu": "4", "memory": "1Gi", "pods": "110"}
    changed = api.patch(f"nodes/{name}", {"spec": {"taints": None, "unschedulable": True}}).ok()
    assert changed["spec"] == {"unschedulable": True}
    assert api.names("nodes", fieldSelector=f"spec.unschedulable=true,metadata.name={name}") == [name]
    api.patch(f"nodes/{name}/status", {"status": {"capacity": {"cpu": "x"}}}).refused(422, "Invalid")
    assert api.delete(f"nodes/{name}").ok()["status"] == "Success"


def nodes_are_checked(api: Api) -> None:
    name = api.own("n")
    for taints in ([{"key": "a", "effect": "X"}], [{"key": "a"}], [{"key": "a", "effect": "NoExecute"}] * 2):
        api.post("nodes", {"metadata": {"name": name}, "spec": {"taints": taints}}).refused(422, "Invalid")
    api.post("nodes", {"metadata": {"name": name}, "spec": {"podCIDR": "x"}}).refused(422, "Invalid")
    api.post("nodes", {"metadata": {"name": name}, "status": {"capacity": {"cpu": "x"}}}).refused(400, "BadRequest")


def a_namespace_ends_in_two_steps(api: Api) -> None:
    name = api.own("ns")
    made = api.post("namespaces", {"metadata": {"name": name}}).ok(201)
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert (made["spec"], made["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    assert api.delete(f"namespaces/{name}").ok()["status"]["phase"] == "Terminating"
    api.delete(f"namespaces/{name}").ok()
    refused = api.post(f"/api/v1/namespaces/{name}/pods", a_pod("a")).refused(403, "Forbidden")
    assert refused.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    empty = {"metadata": {"name": name}, "spec": {"finalizers": []}}
    api.put(f"namespaces/{name}/finalize", empty).ok()
    api.get(f"namespaces/{name}").refused(404, "NotFound")


def some_namespaces_are_always_there(api: Api) -> None:
    names = api.names("namespaces")
    assert {"default", "kube-node-lease", "kube-public", "kube-system"} <= set(names)
    message = 'namespaces "default" is forbidden: this namespace may not be deleted'
    api.delete("namespaces/default").refused(403, "Forbidden", message)
    api.post("namespaces", {"metadata": {"name": "a.b"}}).refused(422, "Invalid", field="metadata.name")


def budgets_are_checked(api: Api) -> None:
    both = a_budget("b", minAvailable=1, maxUnavailable=1)
    api.post("poddisruptionbudgets", both).refused(422, "Invalid", field="spec")
    for value in (-1, "200%", "x"):
        wrong = a_budget("b", minAvailable=value)
        api.post("poddisruptionbudgets", wrong).refused(422, "Invalid", field="spec.minAvailable")
    selector = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    api.post("poddisruptionbudgets", a_budget("b", selector=selector)).refused(422, "Invalid")
    made = api.post("poddisruptionbudgets", a_budget("b", minAvailable=1)).ok(201)
    assert made["metadata"]["generation"] == 1
    assert made["status"]["disruptionsAllowed"] == 0
    api.put("poddisruptionbudgets/b", a_budget("b", minAvailable=2)).refused(422, "Invalid")
    changed = api.patch("poddisruptionbudgets/b", {"spec": {"minAvailable": 2}}).ok()
    assert changed["metadata"]["generation"] == 2


def leases_are_checked(api: Api) -> None:
    api.post("leases", a_lease("l", leaseDurationSeconds=0)).refused(422, "Invalid", field="spec.leaseDurationSeconds")
    api.post("leases", a_lease("l", leaseTransitions=-1)).refused(422, "Invalid", field="spec.leaseTransitions")
    api.post("leases", a_lease("l", renewTime="x")).refused(400, "BadRequest")
    made = api.post("leases", a_lease("l", renewTime="2026-01-01T00:00:00.123456Z")).ok(201)
    assert made["spec"]["renewTime"] == "2026-01-01T00:00:00.123456Z"


def events_have_two_faces(api: Api) -> None:
    where = {"kind": "Pod", "namespace": api.namespace, "name": "x"}
    core = {"metadata": {"name": "old"}, "involvedObject": where, "reason": "R", "message": "m", "type": "Normal"}
    api.post("events", core).ok(201)
    new = {
        "metadata": {"name": "new"},
        "regarding": where,
        "reason": "S",
        "note": "n",
        "type": "Warning",
        "action": "A",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "contract.io/x",
        "reportingInstance": "i",
    }
    api.post("newevents", new).ok(201)
    assert api.names("events") == api.names("newevents") == ["new", "old"]
    assert api.get("newevents/old").ok()["note"] == "m"
    seen = api.get("events/new").ok()
    assert (seen["message"], seen["involvedObject"]["name"], seen["reportingComponent"]) == ("n", "x", "contract.io/x")
    times = {"eventTime": new["eventTime"], "firstTimestamp": None, "lastTimestamp": None}
    assert {key: seen[key] for key in times} == times, "a time that is not set is null: kubectl may sort by it"
    old = api.get("newevents/old").ok()
    assert (old["eventTime"], old["deprecatedFirstTimestamp"], old["deprecatedLastTimestamp"]) == (None, None, None)
    assert api.names("events", fieldSelector="involvedObject.name=x,reason=S") == ["new"]
    elsewhere = {**core, "metadata": {"name": "e"}, "involvedObject": {**where, "namespace": "other"}}
    api.post("events", elsewhere).refused(422, "Invalid", field="involvedObject.namespace")


def workloads_have_defaults_and_a_size(api: Api) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    made = api.post("deployments", {"metadata": {"name": "d"}, "spec": spec}).ok(201)
    assert (made["spec"]["replicas"], made["metadata"]["generation"]) == (1, 1)
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": "25%", "maxSurge": "25%"}
    scale = api.get("deployments/d/scale").ok()
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 1}, "app=x")
    api.patch("deployments/d/scale", {"spec": {"replicas": 3}}).ok()
    changed = api.get("deployments/d").ok()
    assert (changed["spec"]["replicas"], changed["metadata"]["generation"]) == (3, 2)
    api.patch("deployments/d/scale", {"spec": {"replicas": -1}}).refused(422, "Invalid", field="spec.replicas")
    # An annotation counts as a change of the deployment, unless its controller writes it with the status.
    told = api.patch("deployments/d/status", {"metadata": {"annotations": {"a": "b"}}, "status": {"replicas": 1}}).ok()
    assert (told["metadata"]["annotations"], told["metadata"]["generation"]) == ({"a": "b"}, 2)
    assert api.patch("deployments/d", {"metadata": {"annotations": {"a": "c"}}}).ok()["metadata"]["generation"] == 3
    other = {**spec, "selector": {"matchLabels": {"app": "y"}}}
    api.post("deployments", {"metadata": {"name": "e"}, "spec": other}).refused(422, "Invalid")
    api.patch("deployments/d", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}).refused(422, "Invalid")


def custom_kinds_have_a_schema(api: Api) -> None:
    made = api.post("widgets", a_widget("a", size=1, unknown=5)).ok(201)
    assert made["spec"] == {"size": 1, "mode": "a"}
    assert made["metadata"]["generation"] == 1
    refusals: list[tuple[dict, str]] = [
        ({}, "spec.size"),
        ({"size": "x"}, "spec.size"),
        ({"size": 11}, "spec.size"),
        ({"size": 1, "mode": "z"}, "spec.mode"),
        ({"size": 1, "name": "A"}, "spec.name"),
        ({"size": 1, "parts": ["a", 1]}, "spec.parts[1]"),
    ]
    for spec, field in refusals:
        api.post("widgets", a_widget("b", **spec)).refused(422, "Invalid", field=field)
    api.post("widgets", {"metadata": {"name": "b"}, "spec": {"size": 1}}).refused(400, "BadRequest")
    api.post("widgets", {**a_widget("b", size=1), "kind": "Bar"}).refused(422, "Invalid", field="kind")
    api.post("widgets", a_widget("b", size=1, unknown=5), "fieldValidation=Strict").refused(400, "BadRequest")


def custom_kinds_have_a_status(api: Api) -> None:
    made = api.post("widgets", {**a_widget("a", size=1), "status": {"phase": "x"}}).ok(201)
    assert "status" not in made
    assert api.patch("widgets/a", {"status": {"phase": "y"}}).ok().get("status") is None
    api.patch("widgets/a/status", {"status": {"phase": 5}}).refused(422, "Invalid", field="status.phase")
    changed = api.patch("widgets/a/status", {"status": {"phase": "y"}, "metadata": {"labels": {"a": "b"}}}).ok()
    assert (changed["status"], changed["metadata"].get("labels")) == ({"phase": "y"}, None)
    assert changed["metadata"]["generation"] == 1
    assert api.patch("widgets/a", {"spec": {"size": 2}}).ok()["metadata"]["generation"] == 2
    api.patch("widgets/a", {}, "strategic").refused(415, "UnsupportedMediaType")
    api.put("widgets/a", a_widget("a", size=3)).refused(422, "Invalid", field="metadata.resourceVersion")
    listed = api.get("widgets").ok()
    assert (listed["kind"], listed["items"][0]["kind"]) == ("WidgetList", "Widget")


def discovery_tells_of_everything(api: Api) -> None:
    old = {each["name"]: each for each in api.get("/api/v1").ok()["resources"]}
    assert {"pods", "pods/binding", "pods/eviction", "nodes", "namespaces"} <= set(old)
    assert old["pods"]["shortNames"] == ["po"]
    new = api.get("/apis", accept=AGGREGATED).ok()
    groups = {each["metadata"]["name"] for each in new["items"]}
    assert {"apps", "batch", "policy", "coordination.k8s.io", "contract.kubenexus.io"} <= groups
    assert "apps" in {each["name"] for each in api.get("/apis").ok()["groups"]}
    custom = api.get("/apis/contract.kubenexus.io/v1").ok()["resources"]
    assert {"widgets", "widgets/status"} == {each["name"] for each in custom}
    assert api.get("/version").ok()["minor"] == "37"
    for path in ("/healthz", "/livez", "/readyz"):
        assert api.get(path).answer.json == "ok"


def schemas_are_published(api: Api) -> None:
    paths = api.get("/openapi/v3").ok()["paths"]
    assert {"api/v1", "apis/apps/v1"} <= set(paths)
    document = api.get(paths["api/v1"]["serverRelativeURL"]).ok()
    assert "containers" in document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]


def everybody_here_may_do_everything(api: Api) -> None:
    asked = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert api.post(path, asked).ok(201)["status"]["allowed"] is True
