"""Patches of all four kinds."""

from tests.contract.api import Api, a_lease, a_pod


def json_patches_are_all_or_nothing(api: Api) -> None:
    api.post("pods", a_pod("a")).ok(201)
    steps = [
        {"op": "test", "path": "/metadata/labels/app", "value": "a"},
        {"op": "add", "path": "/metadata/labels/x", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/x", "value": "2"},
        {"op": "copy", "from": "/metadata/labels/x", "path": "/metadata/labels/y"},
        {"op": "move", "from": "/metadata/labels/y", "path": "/metadata/labels/contract.io~1z"},
        {"op": "remove", "path": "/metadata/labels/app"},
    ]
    labels = api.patch("pods/a", steps, "json").ok()["metadata"]["labels"]
    assert labels == {"x": "2", "contract.io/z": "2"}
    api.patch("pods/a", [{"op": "test", "path": "/metadata/labels/x", "value": "n"}], "json").refused(422, "Invalid")
    api.patch("pods/a", [{"op": "remove", "path": "/metadata/labels/nope"}], "json").refused(422, "Invalid")
    api.patch("pods/a", {"op": "x"}, "json").refused(400, "BadRequest")
    half = [{"op": "remove", "path": "/metadata/labels/x"}, {"op": "remove", "path": "/nowhere"}]
    api.patch("pods/a", half, "json").refused(422, "Invalid")
    assert api.get("pods/a").ok()["metadata"]["labels"] == labels


def merge_patches_replace_lists_and_drop_nulls(api: Api) -> None:
    api.post("pods", a_pod("a")).ok(201)
    changed = api.patch("pods/a", {"metadata": {"labels": {"app": None, "x": "y"}}}).ok()
    assert changed["metadata"]["labels"] == {"x": "y"}
    api.patch("pods/a", []).refused(400, "BadRequest")
    api.patch("pods/a", b"{").refused(400, "BadRequest")
    api.patch("pods/a", {"spec": {"priority": "x"}}).refused(422, "Invalid")
    api.patch("pods/a", {"kind": "Node"}).refused(422, "Invalid")
    api.patch("pods/nope", {}).refused(404, "NotFound")


def patches_keep_identity(api: Api) -> None:
    api.post("pods", a_pod("a")).ok(201)
    api.patch("pods/a", {"metadata": {"name": "b"}}).refused(400, "BadRequest")
    api.patch("pods/a", {"metadata": {"namespace": "b"}}).refused(400, "BadRequest")
    api.patch("pods/a", {"metadata": {"resourceVersion": "1"}}).refused(409, "Conflict")
    api.patch("pods/a", {"metadata": {"uid": "1"}}).refused(422, "Invalid", field="metadata.uid")


def strategic_patches_merge_by_key(api: Api) -> None:
    both = [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]
    api.post("pods", a_pod("a", containers=both)).ok(201)
    changed = api.patch("pods/a", {"spec": {"containers": [{"name": "d", "image": "k"}]}}, "strategic").ok()
    images = {each["name"]: each["image"] for each in changed["spec"]["containers"]}
    assert images == {"c": "i", "d": "k"}
    api.patch("pods/a", {"spec": {"containers": [{"image": "x"}]}}, "strategic").refused(500)
    labels = {"metadata": {"labels": {"$patch": "replace", "only": "one"}}}
    assert api.patch("pods/a", labels, "strategic").ok()["metadata"]["labels"] == {"only": "one"}
    first = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
    api.patch("pods/a/status", first, "strategic").ok()
    second = {"status": {"conditions": [{"type": "B", "status": "True"}, {"type": "A", "status": "False"}]}}
    conditions = api.patch("pods/a/status", second, "strategic").ok()["status"]["conditions"]
    assert sorted((each["type"], each["status"]) for each in conditions) == [("A", "False"), ("B", "True")]
    finalizers = {"metadata": {"finalizers": ["contract.io/a"]}}
    api.patch("pods/a", finalizers, "strategic").ok()
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["contract.io/a"]}}
    assert "finalizers" not in api.patch("pods/a", gone, "strategic").ok()["metadata"]


def apply_makes_changes_and_owns(api: Api) -> None:
    lease = a_lease("l", holderIdentity="x", leaseDurationSeconds=5)
    made = api.patch("leases/l", lease, "apply", "fieldManager=one").ok(201)
    again = api.patch("leases/l", lease, "apply", "fieldManager=one").ok()
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    other = a_lease("l", holderIdentity="y")
    refused = api.patch("leases/l", other, "apply", "fieldManager=two").refused(409, "Conflict")
    causes = refused.json["details"]["causes"]
    assert [(each["reason"], each["field"]) for each in causes] == [("FieldManagerConflict", ".spec.holderIdentity")]
    forced = api.patch("leases/l", other, "apply", "fieldManager=two&force=true").ok()
    assert forced["spec"] == {"holderIdentity": "y", "leaseDurationSeconds": 5}
    # What nobody applies any more goes.
    left = api.patch("leases/l", a_lease("l"), "apply", "fieldManager=one").ok()
    assert left["spec"] == {"holderIdentity": "y"}
    api.patch("leases/l", lease, "apply").refused(422, "Invalid", field="fieldManager")


def apply_sees_who_updates(api: Api) -> None:
    api.patch("leases/l", a_lease("l", holderIdentity="x"), "apply", "fieldManager=one").ok(201)
    api.patch("leases/l", {"spec": {"holderIdentity": "y"}}, query="fieldManager=two").ok()
    api.patch("leases/l", a_lease("l", holderIdentity="x"), "apply", "fieldManager=one").refused(409, "Conflict")
    forced = api.patch("leases/l", a_lease("l", holderIdentity="x"), "apply", "fieldManager=one&force=true").ok()
    assert forced["spec"]["holderIdentity"] == "x"


def apply_merges_lists_by_key(api: Api) -> None:
    def pod(**image: str) -> dict:
        return a_pod("a", containers=[{"name": name, "image": value} for name, value in image.items()])

    api.patch("pods/a", pod(c="i"), "apply", "fieldManager=one").ok(201)
    changed = api.patch("pods/a", pod(c="k"), "apply", "fieldManager=one").ok()
    assert [each["image"] for each in changed["spec"]["containers"]] == ["k"]
    api.patch("pods/a", pod(c="z"), "apply", "fieldManager=two").refused(409, "Conflict")
