"""The office: whose turn it is, and how it goes on after a refusal or a restart."""

from tests.sim.controllers.towns import APPS, CORE, Town, sized


def test_behind_a_closed_door_they_show_the_token() -> None:
    town = Town(token="secret")
    town.apply(APPS, "deployments", "web", sized("web", 2))
    town.busy()
    assert len(town.names()) == 2


def test_a_large_wish_is_fulfilled_in_turns_so_that_others_are_served_in_between() -> None:
    town = Town()
    town.apply(APPS, "replicasets", "large", sized("large", 250))
    town.controllers.run(1)
    assert len(town.names()) == 100
    assert not town.controllers.idle
    town.settle()
    assert len(town.names()) == 250


def test_whoever_is_closed_does_nothing_more() -> None:
    town = Town()
    town.controllers.close()
    town.apply(APPS, "replicasets", "web", sized("web", 2))
    town.settle()
    assert town.names() == []


def test_others_go_on_where_the_first_ones_were_killed() -> None:
    town = Town()
    town.apply(APPS, "replicasets", "web", sized("web", 250))
    town.controllers.run(1)
    town.restart()
    town.settle()
    assert len(town.names()) == 250


def test_there_is_nothing_to_do_where_all_is_well() -> None:
    town = Town()
    town.apply(APPS, "deployments", "web", sized("web", 3))
    town.apply(APPS, "statefulsets", "db", sized("db", 2))
    town.busy()
    assert (town.settle(), town.controllers.next_due()) == (0, None)
    town.restart()
    assert town.settle() == 0


def test_in_a_namespace_that_ends_nothing_is_made() -> None:
    town = Town()
    town.do("POST", f"{CORE}/namespaces", {"metadata": {"name": "short"}})
    path = "/apis/apps/v1/namespaces/short/replicasets"
    town.do("POST", path, {"metadata": {"name": "web"}, "spec": sized("web", 2)})
    town.settle()
    town.do("DELETE", f"{CORE}/namespaces/short")
    town.settle()
    left = [each["metadata"]["name"] for each in town.do("GET", f"{CORE}/namespaces")["items"]]
    assert "short" not in left
