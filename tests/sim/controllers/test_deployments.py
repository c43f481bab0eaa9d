"""Deployments and ReplicaSets: what a user sees of them."""

import pytest

from tests.sim.controllers.towns import APPS, CORE, Json, Town, sized

IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}


def deployed(replicas: int, **more: object) -> Town:
    town = Town()
    town.apply(APPS, "deployments", "web", sized("web", replicas, **more))
    town.busy()
    return town


def status(town: Town) -> Json:
    return dict(town.get(APPS, "deployments", "web")["status"])


def conditions(town: Town) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status(town)["conditions"]}


def test_it_makes_a_replica_set_and_that_makes_pods() -> None:
    town = deployed(3)
    [replicas] = town.items(APPS, "replicasets")
    mark = replicas["metadata"]["labels"]["pod-template-hash"]
    assert replicas["metadata"]["name"] == f"web-{mark}"
    assert replicas["metadata"]["annotations"] == {
        "deployment.kubernetes.io/revision": "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert replicas["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": mark}
    for pod in town.pods():
        meta = pod["metadata"]
        assert meta["generateName"] == f"web-{mark}-"
        assert meta["labels"] == {"app": "web", "pod-template-hash": mark}
        assert meta["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"web-{mark}",
                "uid": replicas["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]


def test_its_status_says_how_far_it_is() -> None:
    town = Town()
    town.apply(APPS, "deployments", "web", sized("web", 4))
    town.settle()
    assert conditions(town)["Available"] == ("False", "MinimumReplicasUnavailable")
    assert status(town)["unavailableReplicas"] == 4
    for name in town.names()[:3]:  # 25 % may be lacking
        town.run(name)
    town.settle()
    assert conditions(town)["Available"] == ("True", "MinimumReplicasAvailable")
    assert conditions(town)["Progressing"] == ("True", "ReplicaSetUpdated")
    town.busy()
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    assert [status(town)[field] for field in counts] == [4, 4, 4, 4]
    assert "unavailableReplicas" not in status(town)
    assert conditions(town)["Progressing"] == ("True", "NewReplicaSetAvailable")
    item = town.get(APPS, "deployments", "web")
    assert item["status"]["observedGeneration"] == item["metadata"]["generation"]


def test_min_ready_seconds_have_to_pass() -> None:
    town = deployed(2, minReadySeconds=30)
    assert (status(town)["readyReplicas"], status(town).get("availableReplicas", 0)) == (2, 0)
    assert town.controllers.next_due() == town.clock.now() + 30
    town.later(30)
    assert status(town)["availableReplicas"] == 2


def test_a_rollout_that_does_not_get_on_has_failed() -> None:
    town = Town()
    town.apply(APPS, "deployments", "web", sized("web", 1, progressDeadlineSeconds=60))
    town.settle()
    town.later(59)
    assert conditions(town)["Progressing"][0] == "True"
    town.later(5)
    assert conditions(town)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    town.busy()
    assert conditions(town)["Progressing"] == ("True", "NewReplicaSetAvailable")


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable"),
    [(4, "25%", "25%"), (10, 3, 0), (10, 0, 3), (3, "100%", 0), (1, "25%", "25%"), (5, 0, "20%")],
)
def test_a_rolling_update_keeps_its_limits_at_every_step(
    replicas: int, surge: int | str, unavailable: int | str
) -> None:
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    town = deployed(replicas, strategy={"type": "RollingUpdate", "rollingUpdate": limits})
    most = replicas + (surge if isinstance(surge, int) else -(-replicas * int(surge[:-1]) // 100))
    lacking = unavailable if isinstance(unavailable, int) else replicas * int(unavailable[:-1]) // 100
    town.patch(APPS, "deployments", "web", IMAGE_2)
    while True:
        town.settle()
        alive = [pod for pod in town.pods() if "deletionTimestamp" not in pod["metadata"]]
        assert len(alive) <= most
        assert sum(pod["status"]["phase"] == "Running" for pod in alive) >= replicas - lacking
        if not one_thing_happens(town):
            break
    images = [pod["spec"]["containers"][0]["image"] for pod in town.pods()]
    assert images == ["i:2"] * replicas
    assert conditions(town)["Progressing"] == ("True", "NewReplicaSetAvailable")


def one_thing_happens(town: Town) -> bool:
    for pod in town.pods():
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            town.end(name)
            return True
        if not pod["spec"].get("nodeName"):
            town.run(name)
            return True
    return False


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    town = deployed(3, strategy={"type": "Recreate"})
    old = set(town.names())
    town.patch(APPS, "deployments", "web", IMAGE_2)
    town.settle()
    assert set(town.names()) == old
    for name in sorted(old)[:2]:
        town.end(name)
    town.settle()
    assert len(town.names()) == 1
    town.busy()
    assert len(set(town.names()) - old) == 3


def test_going_back_takes_the_old_replica_set_and_a_new_number() -> None:
    town = deployed(2)
    [first] = [each["metadata"]["name"] for each in town.items(APPS, "replicasets")]
    town.patch(APPS, "deployments", "web", IMAGE_2)
    town.busy()
    town.patch(
        APPS, "deployments", "web", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:1"}]}}}}
    )
    town.busy()
    sets = {each["metadata"]["name"]: each for each in town.items(APPS, "replicasets")}
    assert len(sets) == 2
    assert sets[first]["spec"]["replicas"] == 2
    assert sets[first]["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    assert town.get(APPS, "deployments", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_only_so_many_old_versions_are_kept() -> None:
    town = deployed(1, revisionHistoryLimit=2)
    for number in range(2, 7):
        containers = [{"name": "c", "image": f"i:{number}"}]
        town.patch(APPS, "deployments", "web", {"spec": {"template": {"spec": {"containers": containers}}}})
        town.busy()
    assert len(town.items(APPS, "replicasets")) == 3


def test_what_is_paused_does_not_roll_but_has_its_size() -> None:
    town = deployed(2)
    town.patch(APPS, "deployments", "web", {"spec": {"paused": True, "replicas": 4, **IMAGE_2["spec"]}})
    town.busy()
    assert [pod["spec"]["containers"][0]["image"] for pod in town.pods()] == ["i:1"] * 4
    town.patch(APPS, "deployments", "web", {"spec": {"paused": None}})
    town.busy()
    assert [pod["spec"]["containers"][0]["image"] for pod in town.pods()] == ["i:2"] * 4


def test_who_is_missed_least_goes_first() -> None:
    town = Town()
    town.apply(APPS, "replicasets", "web", sized("web", 5))
    town.settle()
    _pending, unready, young, old, crowded = town.names()
    for name, node in ((unready, "a"), (young, "b"), (old, "c"), (crowded, "d")):
        town.bind(name, node)
    town.say(old, "Running", "True")
    town.say(crowded, "Running", "True")
    town.say(unready, "Running", "False")
    town.clock.advance(100)
    town.say(young, "Running", "True")
    for replicas, left in ((4, {unready, young, old, crowded}), (3, {young, old, crowded}), (2, {old, crowded})):
        town.patch(APPS, "replicasets", "web", {"spec": {"replicas": replicas}})
        town.settle()
        assert {p["metadata"]["name"] for p in town.pods() if "deletionTimestamp" not in p["metadata"]} == left


def test_the_cheap_one_goes_before_the_dear_one() -> None:
    town = Town()
    town.apply(APPS, "replicasets", "web", sized("web", 3))
    town.busy()
    cheap = town.names()[1]
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
    town.patch(CORE, "pods", cheap, cost)
    town.patch(APPS, "replicasets", "web", {"spec": {"replicas": 2}})
    town.busy()
    assert cheap not in town.names()


def test_pods_that_nobody_has_are_adopted_and_relabelled_ones_let_go() -> None:
    town = Town()
    alone = {
        "metadata": {"name": "alone", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    town.do("POST", f"{CORE}/namespaces/default/pods", alone)
    town.apply(APPS, "replicasets", "web", sized("web", 2))
    town.busy()
    assert len(town.names()) == 2
    assert town.get(CORE, "pods", "alone")["metadata"]["ownerReferences"][0]["name"] == "web"
    town.patch(CORE, "pods", "alone", {"metadata": {"labels": {"app": "other"}}})
    town.busy()
    assert "ownerReferences" not in town.get(CORE, "pods", "alone")["metadata"]
    assert len(town.names()) == 3


def test_a_refusal_is_told_and_tried_again() -> None:
    town = Town()
    spec = sized("web", 1)
    spec["template"]["spec"]["priorityClassName"] = "nobody-knows-it"
    town.apply(APPS, "replicasets", "web", spec)
    town.settle()
    event = town.items(CORE, "events")[0]
    assert (event["reason"], event["type"]) == ("FailedCreate", "Warning")
    assert "nobody-knows-it" in event["message"]
    town.do("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "nobody-knows-it"}, "value": 5})
    assert town.names() == []
    town.later(2)
    assert len(town.names()) == 1


def test_the_pods_go_with_the_deployment() -> None:
    town = deployed(3)
    town.delete(APPS, "deployments", "web")
    town.busy()
    assert (town.names(), town.items(APPS, "replicasets")) == ([], [])


def test_a_strangers_replica_set_of_that_name_is_left_alone() -> None:
    town = deployed(1)
    [made] = town.items(APPS, "replicasets")
    name = made["metadata"]["name"]
    other = Town()
    stranger = sized("stranger", 0)
    other.apply(APPS, "replicasets", name, stranger)
    other.apply(APPS, "deployments", "web", sized("web", 1))
    other.busy()
    assert len(other.names()) == 1
    assert other.get(APPS, "deployments", "web")["status"]["collisionCount"] == 1
    assert other.get(APPS, "replicasets", name)["spec"]["replicas"] == 0


def test_deleted_in_the_foreground_it_stays_until_its_last_pod_is_gone() -> None:
    town = deployed(2)
    town.delete(APPS, "deployments", "web", "?propagationPolicy=Foreground")
    town.settle()
    one, other = town.names()
    town.end(one)
    town.settle()
    assert len(town.items(APPS, "deployments")) == 1
    town.end(other)
    town.settle()
    assert (town.items(APPS, "deployments"), town.items(APPS, "replicasets")) == ([], [])
