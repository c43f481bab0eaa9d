"""Create, get, update, delete: what all kinds have in common."""

from tests.contract.api import Api, a_lease, a_pod


def a_name_is_given_once(api: Api) -> None:
    made = api.post("pods", a_pod("a")).ok(201)
    assert made["kind"] == "Pod"
    assert made["apiVersion"] == "v1"
    assert made["metadata"]["uid"]
    assert made["metadata"]["creationTimestamp"].endswith("Z")
    api.post("pods", a_pod("a")).refused(409, "AlreadyExists", 'pods "a" already exists')


def a_kind_need_not_be_said_but_must_be_right(api: Api) -> None:
    api.post("pods", {"metadata": {"name": "a"}, "spec": a_pod("a")["spec"]}).ok(201)
    api.post("pods", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}).refused(400, "BadRequest")
    api.post("pods", {"apiVersion": "apps/v1", "kind": "Pod", "metadata": {"name": "b"}}).refused(400, "BadRequest")
    api.post("pods", {"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "b"}}).refused(400, "BadRequest")


def what_is_no_object_is_refused(api: Api) -> None:
    for body in (b"{foo", b"", b"[]", b'"text"'):
        api.post("pods", body).refused(400, "BadRequest")
    api.post("pods", b"{}").refused(422, "Invalid", field="metadata.name")
    api.post("pods", {"metadata": {"name": 5}}).refused(400, "BadRequest")
    api.post("pods", a_pod("a", priority="x")).refused(400, "BadRequest")
    api.post("pods", a_pod("a", containers={})).refused(400, "BadRequest")


def unknown_fields_are_dropped_or_refused(api: Api) -> None:
    made = api.post("pods", a_pod("a", foo=1)).ok(201)
    assert "foo" not in made["spec"]
    api.post("pods", a_pod("b", foo=1), "fieldValidation=Strict").refused(400, "BadRequest")
    api.post("pods", a_pod("b"), "fieldValidation=Strict").ok(201)
    api.post("pods", a_pod("c"), "fieldValidation=Foo").refused(422, "Invalid", field="fieldValidation")


def names_are_checked_and_generated(api: Api) -> None:
    api.post("pods", a_pod("Q_")).refused(422, "Invalid", field="metadata.name")
    api.post("pods", {"metadata": {}, "spec": a_pod("a")["spec"]}).refused(422, "Invalid", field="metadata.name")
    made = api.post("pods", {"metadata": {"generateName": "gen-"}, "spec": a_pod("a")["spec"]}).ok(201)
    assert made["metadata"]["name"].startswith("gen-")
    assert len(made["metadata"]["name"]) == len("gen-") + 5


def a_namespace_must_be_there_and_fit(api: Api) -> None:
    pod = a_pod("a", meta={"namespace": "default"})
    api.post("pods", pod).refused(400, "BadRequest")
    api.post("/api/v1/namespaces/nowhere/pods", a_pod("a")).refused(404, "NotFound", 'namespaces "nowhere" not found')
    api.get("/api/v1/namespaces/nowhere/pods/a").refused(404, "NotFound", 'pods "a" not found')
    assert api.get("/api/v1/namespaces/nowhere/pods").ok()["items"] == []


def a_dry_run_leaves_nothing(api: Api) -> None:
    api.post("pods", a_pod("a"), "dryRun=All").ok(201)
    api.get("pods/a").refused(404, "NotFound")
    api.post("pods", a_pod("a"), "dryRun=Foo").refused(422, "Invalid", field="dryRun")
    api.post("pods", a_pod("a")).ok(201)
    api.patch("pods/a", {"metadata": {"labels": {"x": "y"}}}, query="dryRun=All").ok()
    api.delete("pods/a", "dryRun=All").ok()
    assert api.get("pods/a").ok()["metadata"]["labels"] == {"app": "a"}


def an_update_needs_the_version_it_has_seen(api: Api) -> None:
    first = api.post("leases", a_lease("l", holderIdentity="x")).ok(201)
    changed = {**first, "spec": {"holderIdentity": "y"}}
    second = api.put("leases/l", changed).ok()
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    why = (
        'Operation cannot be fulfilled on leases.coordination.k8s.io "l": the object has been modified; please apply '
        "your changes to the latest version and try again"
    )
    api.put("leases/l", changed).refused(409, "Conflict", why)
    api.put("leases/l", a_lease("l")).refused(422, "Invalid", field="metadata.resourceVersion")
    assert api.get("leases/l").ok()["spec"]["holderIdentity"] == "y"


def pods_may_be_updated_without_a_version(api: Api) -> None:
    api.post("pods", a_pod("a")).ok(201)
    changed = api.put("pods/a", a_pod("a", meta={"labels": {"x": "y"}})).ok()
    assert changed["metadata"]["labels"] == {"x": "y"}
    assert changed["metadata"]["generation"] == 1


def an_update_is_of_the_same_object(api: Api) -> None:
    api.post("pods", a_pod("a")).ok(201)
    api.put("pods/a", a_pod("b")).refused(400, "BadRequest")
    api.put("pods/a", {**a_pod("a"), "metadata": {}}).refused(400, "BadRequest")
    api.put("pods/a", a_pod("a", meta={"namespace": "other"})).refused(400, "BadRequest")
    api.put("pods/a", a_pod("a", meta={"uid": "x"})).refused(409, "Conflict")
    api.put("pods/a", a_pod("a", meta={"resourceVersion": "1"})).refused(409, "Conflict")
    api.put("pods/a", a_pod("a", meta={"resourceVersion": "x"})).refused(500)
    api.put("pods/zz", a_pod("zz")).refused(404, "NotFound", 'pods "zz" not found')


def an_update_that_changes_nothing_is_no_write(api: Api) -> None:
    first = api.post("leases", a_lease("l", holderIdentity="x")).ok(201)
    assert api.put("leases/l", first).ok()["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    same = api.patch("leases/l", {"spec": {"holderIdentity": "x"}}).ok()
    assert same["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def some_kinds_are_made_by_put(api: Api) -> None:
    api.put("leases/l", a_lease("l", holderIdentity="x")).ok(201)
    old = a_lease("m")
    old["metadata"]["resourceVersion"] = "1"
    api.put("leases/m", old).ok(201)
    other = a_lease("n")
    other["metadata"]["uid"] = "x"
    api.put("leases/n", other).refused(409, "Conflict")


def a_new_object_has_no_version(api: Api) -> None:
    api.post("pods", a_pod("a", meta={"resourceVersion": "5"})).refused(500)


def deletion_answers_with_a_status_or_the_object(api: Api) -> None:
    lease = api.post("leases", a_lease("l")).ok(201)
    gone = api.delete("leases/l").ok()
    assert gone["status"] == "Success"
    group = {"name": "l", "group": "coordination.k8s.io", "kind": "leases", "uid": lease["metadata"]["uid"]}
    assert gone["details"] == group
    api.delete("leases/l").refused(404, "NotFound", 'leases.coordination.k8s.io "l" not found')
    api.post("pods", a_pod("a")).ok(201)
    assert api.delete("pods/a").ok()["kind"] == "Pod"


def deletion_has_preconditions(api: Api) -> None:
    made = api.post("leases", a_lease("l")).ok(201)
    api.delete("leases/l", preconditions={"uid": "x"}).refused(409, "Conflict")
    api.delete("leases/l", preconditions={"resourceVersion": "1"}).refused(409, "Conflict")
    api.delete("leases/l", propagationPolicy="X").refused(422, "Invalid", field="propagationPolicy")
    api.delete("leases/l", kind="Foo", apiVersion="v1").refused(400, "BadRequest")
    both = api.delete("leases/l", propagationPolicy="Orphan", orphanDependents=True)
    both.refused(422, "Invalid", field="propagationPolicy")
    version = made["metadata"]["resourceVersion"]
    api.delete("leases/l", preconditions={"uid": made["metadata"]["uid"], "resourceVersion": version}).ok()


def finalizers_hold_an_object(api: Api) -> None:
    lease = a_lease("l")
    lease["metadata"]["finalizers"] = ["contract.kubenexus.io/hold"]
    api.post("leases", lease).ok(201)
    assert api.delete("leases/l").ok()["metadata"]["deletionTimestamp"]
    api.get("leases/l").ok()
    added = {"metadata": {"finalizers": ["contract.kubenexus.io/hold", "contract.kubenexus.io/more"]}}
    api.patch("leases/l", added).refused(422, "Invalid", field="metadata.finalizers")
    api.patch("leases/l", {"metadata": {"finalizers": None}}).ok()
    api.get("leases/l").refused(404, "NotFound")


def all_of_a_collection_go_at_once(api: Api) -> None:
    for name in "cab":
        api.post("leases", {**a_lease(name), "metadata": {"name": name, "labels": {"odd": str(name != "b")}}}).ok(201)
    gone = api.delete("leases", "labelSelector=odd%3DTrue").ok()
    assert [item["metadata"]["name"] for item in gone["items"]] == ["a", "c"]
    assert api.names("leases") == ["b"]


def labels_and_annotations_are_checked(api: Api) -> None:
    api.post("pods", a_pod("a", meta={"labels": {"x y": "z"}})).refused(422, "Invalid", field="metadata.labels")
    api.post("pods", a_pod("a", meta={"labels": {"x": "-"}})).refused(422, "Invalid", field="metadata.labels")
    bad = a_pod("a", meta={"annotations": {"x y": "z"}})
    api.post("pods", bad).refused(422, "Invalid", field="metadata.annotations")
    api.post("pods", a_pod("a", meta={"ownerReferences": [{"kind": "X"}]})).refused(422, "Invalid")


def methods_and_paths_are_known(api: Api) -> None:
    message = "the server does not allow this method on the requested resource"
    api.put("pods", a_pod("a")).refused(405, "MethodNotAllowed", message)
    api.post("pods/a", a_pod("a")).refused(405, "MethodNotAllowed", message)
    api.post("/api/v1/pods", a_pod("a")).refused(405, "MethodNotAllowed", message)
    api.delete("/api/v1/namespaces").refused(405, "MethodNotAllowed", message)
    message = "the server could not find the requested resource"
    api.get("/api/v1/foos").refused(404, "NotFound", message)
    api.get(f"/api/v1/namespaces/{api.namespace}/nodes").refused(404, "NotFound", message)
    api.get("pods/a/foo").refused(404, "NotFound", message)
    assert api.get("/apis/foo.io/v1/foos").answer.code == 404
    assert api.get("/nowhere").answer.json == "404 page not found\n"


def formats_are_known(api: Api) -> None:
    api.get("pods", accept="text/html").refused(406, "NotAcceptable")
    api.patch("pods/a", {}, kind="").refused(415, "UnsupportedMediaType")
