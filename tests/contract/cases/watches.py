"""Watches: types, order, selectors, where they begin."""

from tests.contract.api import Api, a_binding, a_pod


def changes_come_in_order(api: Api) -> None:
    def act() -> None:
        api.post("pods", a_pod("a")).ok(201)
        api.post("pods/a/binding", a_binding("a", "n1")).ok(201)
        api.patch("pods/a/status", {"status": {"phase": "Running"}}).ok()
        api.patch("pods/a/status", {"status": {"phase": "Running"}}).ok()  # nothing changes, nothing is told
        api.delete("pods/a", gracePeriodSeconds=0).ok()
        api.post("pods", a_pod("z")).ok(201)

    types = [type for type, _ in api.seen("pods", act, "z")]
    assert types == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]


def what_ceases_to_match_is_deleted(api: Api) -> None:
    version = api.version("pods")
    api.post("pods", a_pod("a", meta={"labels": {"in": "1"}})).ok(201)
    api.post("pods", a_pod("b", meta={"labels": {"in": "2"}})).ok(201)
    out = api.patch("pods/a", {"metadata": {"labels": {"in": "2"}}}).ok()
    api.patch("pods/a", {"metadata": {"labels": {"in": "1"}}}).ok()
    api.post("pods", a_pod("z", meta={"labels": {"in": "1"}})).ok(201)
    with api.watch("pods", resourceVersion=version, labelSelector="in=1", timeoutSeconds="10") as watch:
        events = watch.until(lambda event: event["object"]["metadata"]["name"] == "z")
    seen = [(each["type"], each["object"]["metadata"]["name"]) for each in events]
    assert seen == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a"), ("ADDED", "z")]
    # The last state that matched, with the version at which it ceased to.
    assert events[1]["object"]["metadata"]["labels"] == {"in": "1"}
    assert events[1]["object"]["metadata"]["resourceVersion"] == out["metadata"]["resourceVersion"]


def fields_are_followed(api: Api) -> None:
    def act() -> None:
        api.post("pods", a_pod("a")).ok(201)
        api.post("pods/a/binding", a_binding("a", "n1")).ok(201)
        api.patch("pods/a/status", {"status": {"phase": "Succeeded"}}).ok()
        api.post("pods", a_pod("z", nodeName="n1")).ok(201)

    chosen = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded"}
    assert api.seen("pods", act, "z", **chosen) == [("ADDED", "a"), ("DELETED", "a")]


def a_watch_without_a_version_begins_with_what_there_is(api: Api) -> None:
    api.post("pods", a_pod("b")).ok(201)
    api.post("pods", a_pod("a")).ok(201)
    for version in ({}, {"resourceVersion": "0"}):
        with api.watch("pods", timeoutSeconds="10", **version) as watch:
            first = [watch.next(), watch.next()]
        assert sorted((each["type"], each["object"]["metadata"]["name"]) for each in first) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
        ]


def one_object_can_be_watched(api: Api) -> None:
    def act() -> None:
        for name in ("a", "b"):
            api.post("pods", a_pod(name)).ok(201)
        api.patch("pods/a", {"metadata": {"labels": {"x": "y"}}}).ok()

    version = api.version("pods")
    act()
    with api.watch("pods", resourceVersion=version, fieldSelector="metadata.name=a", timeoutSeconds="10") as watch:
        seen = [watch.next()["type"] for _ in range(2)]
    assert seen == ["ADDED", "MODIFIED"]


def initial_events_end_with_a_bookmark(api: Api) -> None:
    api.post("pods", a_pod("a")).ok(201)
    wish = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with api.watch("pods", timeoutSeconds="10", **wish) as watch:
        events = watch.until(lambda event: event["type"] == "BOOKMARK")
    assert [each["type"] for each in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert events[1]["object"]["kind"] == "Pod"


def wrong_watches_are_refused(api: Api) -> None:
    api.get("pods", "watch=1&resourceVersion=x").refused(500)
    api.get("pods", "watch=1&sendInitialEvents=true").refused(422, "Invalid", field="resourceVersionMatch")
    api.get("pods", "watch=1&resourceVersionMatch=NotOlderThan").refused(422, "Invalid")
    api.get("pods", "watch=1&labelSelector=a%20b").refused(400, "BadRequest")
    api.get("pods", "watch=1&fieldSelector=foo%3Dbar").refused(400, "BadRequest")


def a_watch_ends_when_it_was_told_to(api: Api) -> None:
    with api.watch("pods", resourceVersion=api.version("pods"), timeoutSeconds="1") as watch:
        assert list(watch) == []
