"""The office: whose turn it is, and how it goes on after a refusal or a restart."""

from tests.sim.controllers.controller_fixture import APPS, CORE, ControllerFixture, sized


def test_behind_a_closed_door_they_show_the_token() -> None:
    fixture = ControllerFixture(token="secret")
    fixture.apply(APPS, "deployments", "web", sized("web", 2))
    fixture.busy()
    assert len(fixture.names()) == 2


def test_a_large_wish_is_fulfilled_in_turns_so_that_others_are_served_in_between() -> None:
    fixture = ControllerFixture()
    fixture.apply(APPS, "replicasets", "large", sized("large", 250))
    fixture.controllers.run(1)
    assert len(fixture.names()) == 100
    assert not fixture.controllers.idle
    fixture.settle()
    assert len(fixture.names()) == 250


def test_whoever_is_closed_does_nothing_more() -> None:
    fixture = ControllerFixture()
    fixture.controllers.close()
    fixture.apply(APPS, "replicasets", "web", sized("web", 2))
    fixture.settle()
    assert fixture.names() == []


def test_others_go_on_where_the_first_ones_were_killed() -> None:
    fixture = ControllerFixture()
    fixture.apply(APPS, "replicasets", "web", sized("web", 250))
    fixture.controllers.run(1)
    fixture.restart()
    fixture.settle()
    assert len(fixture.names()) == 250


def test_there_is_nothing_to_do_where_all_is_well() -> None:
    fixture = ControllerFixture()
    fixture.apply(APPS, "deployments", "web", sized("web", 3))
    fixture.apply(APPS, "statefulsets", "db", sized("db", 2))
    fixture.busy()
    assert (fixture.settle(), fixture.controllers.next_due()) == (0, None)
    fixture.restart()
    assert fixture.settle() == 0


def test_in_a_namespace_that_ends_nothing_is_made() -> None:
    fixture = ControllerFixture()
    fixture.do("POST", f"{CORE}/namespaces", {"metadata": {"name": "short"}})
    path = "/apis/apps/v1/namespaces/short/replicasets"
    fixture.do("POST", path, {"metadata": {"name": "web"}, "spec": sized("web", 2)})
    fixture.settle()
    fixture.do("DELETE", f"{CORE}/namespaces/short")
    fixture.settle()
    left = [each["metadata"]["name"] for each in fixture.do("GET", f"{CORE}/namespaces")["items"]]
    assert "short" not in left
