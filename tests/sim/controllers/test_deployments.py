"""Deployments and ReplicaSets: what a user sees of them."""

import pytest

from tests.sim.controllers.controller_fixture import APPS, CORE, ControllerFixture, Json, sized

IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}


def deployed(replicas: int, **more: object) -> ControllerFixture:
    fixture = ControllerFixture()
    fixture.apply(APPS, "deployments", "web", sized("web", replicas, **more))
    fixture.busy()
    return fixture


def status(fixture: ControllerFixture) -> Json:
    return dict(fixture.get(APPS, "deployments", "web")["status"])


def conditions(fixture: ControllerFixture) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status(fixture)["conditions"]}


def test_it_makes_a_replica_set_and_that_makes_pods() -> None:
    fixture = deployed(3)
    [replicas] = fixture.items(APPS, "replicasets")
    mark = replicas["metadata"]["labels"]["pod-template-hash"]
    assert replicas["metadata"]["name"] == f"web-{mark}"
    assert replicas["metadata"]["annotations"] == {
        "deployment.kubernetes.io/revision": "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert replicas["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": mark}
    for pod in fixture.pods():
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
    fixture = ControllerFixture()
    fixture.apply(APPS, "deployments", "web", sized("web", 4))
    fixture.settle()
    assert conditions(fixture)["Available"] == ("False", "MinimumReplicasUnavailable")
    assert status(fixture)["unavailableReplicas"] == 4
    for name in fixture.names()[:3]:  # 25 % may be lacking
        fixture.run(name)
    fixture.settle()
    assert conditions(fixture)["Available"] == ("True", "MinimumReplicasAvailable")
    assert conditions(fixture)["Progressing"] == ("True", "ReplicaSetUpdated")
    fixture.busy()
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    assert [status(fixture)[field] for field in counts] == [4, 4, 4, 4]
    assert "unavailableReplicas" not in status(fixture)
    assert conditions(fixture)["Progressing"] == ("True", "NewReplicaSetAvailable")
    item = fixture.get(APPS, "deployments", "web")
    assert item["status"]["observedGeneration"] == item["metadata"]["generation"]


def test_min_ready_seconds_have_to_pass() -> None:
    fixture = deployed(2, minReadySeconds=30)
    assert (status(fixture)["readyReplicas"], status(fixture).get("availableReplicas", 0)) == (2, 0)
    assert fixture.controllers.next_due() == fixture.clock.now() + 30
    fixture.later(30)
    assert status(fixture)["availableReplicas"] == 2


def test_a_rollout_that_does_not_get_on_has_failed() -> None:
    fixture = ControllerFixture()
    fixture.apply(APPS, "deployments", "web", sized("web", 1, progressDeadlineSeconds=60))
    fixture.settle()
    fixture.later(59)
    assert conditions(fixture)["Progressing"][0] == "True"
    fixture.later(5)
    assert conditions(fixture)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    fixture.busy()
    assert conditions(fixture)["Progressing"] == ("True", "NewReplicaSetAvailable")


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable"),
    [(4, "25%", "25%"), (10, 3, 0), (10, 0, 3), (3, "100%", 0), (1, "25%", "25%"), (5, 0, "20%")],
)
def test_a_rolling_update_keeps_its_limits_at_every_step(
    replicas: int, surge: int | str, unavailable: int | str
) -> None:
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    fixture = deployed(replicas, strategy={"type": "RollingUpdate", "rollingUpdate": limits})
    most = replicas + (surge if isinstance(surge, int) else -(-replicas * int(surge[:-1]) // 100))
    lacking = unavailable if isinstance(unavailable, int) else replicas * int(unavailable[:-1]) // 100
    fixture.patch(APPS, "deployments", "web", IMAGE_2)
    while True:
        fixture.settle()
        alive = [pod for pod in fixture.pods() if "deletionTimestamp" not in pod["metadata"]]
        assert len(alive) <= most
        assert sum(pod["status"]["phase"] == "Running" for pod in alive) >= replicas - lacking
        if not one_thing_happens(fixture):
            break
    images = [pod["spec"]["containers"][0]["image"] for pod in fixture.pods()]
    assert images == ["i:2"] * replicas
    assert conditions(fixture)["Progressing"] == ("True", "NewReplicaSetAvailable")


def one_thing_happens(fixture: ControllerFixture) -> bool:
    for pod in fixture.pods():
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            fixture.end(name)
            return True
        if not pod["spec"].get("nodeName"):
            fixture.run(name)
            return True
    return False


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    fixture = deployed(3, strategy={"type": "Recreate"})
    old = set(fixture.names())
    fixture.patch(APPS, "deployments", "web", IMAGE_2)
    fixture.settle()
    assert set(fixture.names()) == old
    for name in sorted(old)[:2]:
        fixture.end(name)
    fixture.settle()
    assert len(fixture.names()) == 1
    fixture.busy()
    assert len(set(fixture.names()) - old) == 3


def test_going_back_takes_the_old_replica_set_and_a_new_number() -> None:
    fixture = deployed(2)
    [first] = [each["metadata"]["name"] for each in fixture.items(APPS, "replicasets")]
    fixture.patch(APPS, "deployments", "web", IMAGE_2)
    fixture.busy()
    fixture.patch(
        APPS, "deployments", "web", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:1"}]}}}}
    )
    fixture.busy()
    sets = {each["metadata"]["name"]: each for each in fixture.items(APPS, "replicasets")}
    assert len(sets) == 2
    assert sets[first]["spec"]["replicas"] == 2
    assert sets[first]["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    assert (
        fixture.get(APPS, "deployments", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    )


def test_only_so_many_old_versions_are_kept() -> None:
    fixture = deployed(1, revisionHistoryLimit=2)
    for number in range(2, 7):
        containers = [{"name": "c", "image": f"i:{number}"}]
        fixture.patch(APPS, "deployments", "web", {"spec": {"template": {"spec": {"containers": containers}}}})
        fixture.busy()
    assert len(fixture.items(APPS, "replicasets")) == 3


def test_what_is_paused_does_not_roll_but_has_its_size() -> None:
    fixture = deployed(2)
    fixture.patch(APPS, "deployments", "web", {"spec": {"paused": True, "replicas": 4, **IMAGE_2["spec"]}})
    fixture.busy()
    assert [pod["spec"]["containers"][0]["image"] for pod in fixture.pods()] == ["i:1"] * 4
    fixture.patch(APPS, "deployments", "web", {"spec": {"paused": None}})
    fixture.busy()
    assert [pod["spec"]["containers"][0]["image"] for pod in fixture.pods()] == ["i:2"] * 4


def test_who_is_missed_least_goes_first() -> None:
    fixture = ControllerFixture()
    fixture.apply(APPS, "replicasets", "web", sized("web", 5))
    fixture.settle()
    _pending, unready, young, old, crowded = fixture.names()
    for name, node in ((unready, "a"), (young, "b"), (old, "c"), (crowded, "d")):
        fixture.bind(name, node)
    fixture.say(old, "Running", "True")
    fixture.say(crowded, "Running", "True")
    fixture.say(unready, "Running", "False")
    fixture.clock.advance(100)
    fixture.say(young, "Running", "True")
    for replicas, left in ((4, {unready, young, old, crowded}), (3, {young, old, crowded}), (2, {old, crowded})):
        fixture.patch(APPS, "replicasets", "web", {"spec": {"replicas": replicas}})
        fixture.settle()
        assert {p["metadata"]["name"] for p in fixture.pods() if "deletionTimestamp" not in p["metadata"]} == left


def test_the_cheap_one_goes_before_the_dear_one() -> None:
    fixture = ControllerFixture()
    fixture.apply(APPS, "replicasets", "web", sized("web", 3))
    fixture.busy()
    cheap = fixture.names()[1]
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
    fixture.patch(CORE, "pods", cheap, cost)
    fixture.patch(APPS, "replicasets", "web", {"spec": {"replicas": 2}})
    fixture.busy()
    assert cheap not in fixture.names()


def test_pods_that_nobody_has_are_adopted_and_relabelled_ones_let_go() -> None:
    fixture = ControllerFixture()
    alone = {
        "metadata": {"name": "alone", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    fixture.do("POST", f"{CORE}/namespaces/default/pods", alone)
    fixture.apply(APPS, "replicasets", "web", sized("web", 2))
    fixture.busy()
    assert len(fixture.names()) == 2
    assert fixture.get(CORE, "pods", "alone")["metadata"]["ownerReferences"][0]["name"] == "web"
    fixture.patch(CORE, "pods", "alone", {"metadata": {"labels": {"app": "other"}}})
    fixture.busy()
    assert "ownerReferences" not in fixture.get(CORE, "pods", "alone")["metadata"]
    assert len(fixture.names()) == 3


def test_a_refusal_is_told_and_tried_again() -> None:
    fixture = ControllerFixture()
    spec = sized("web", 1)
    spec["template"]["spec"]["priorityClassName"] = "nobody-knows-it"
    fixture.apply(APPS, "replicasets", "web", spec)
    fixture.settle()
    event = fixture.items(CORE, "events")[0]
    assert (event["reason"], event["type"]) == ("FailedCreate", "Warning")
    assert "nobody-knows-it" in event["message"]
    fixture.do(
        "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "nobody-knows-it"}, "value": 5}
    )
    assert fixture.names() == []
    fixture.later(2)
    assert len(fixture.names()) == 1


def test_the_pods_go_with_the_deployment() -> None:
    fixture = deployed(3)
    fixture.delete(APPS, "deployments", "web")
    fixture.busy()
    assert (fixture.names(), fixture.items(APPS, "replicasets")) == ([], [])


def test_a_strangers_replica_set_of_that_name_is_left_alone() -> None:
    fixture = deployed(1)
    [made] = fixture.items(APPS, "replicasets")
    name = made["metadata"]["name"]
    other = ControllerFixture()
    stranger = sized("stranger", 0)
    other.apply(APPS, "replicasets", name, stranger)
    other.apply(APPS, "deployments", "web", sized("web", 1))
    other.busy()
    assert len(other.names()) == 1
    assert other.get(APPS, "deployments", "web")["status"]["collisionCount"] == 1
    assert other.get(APPS, "replicasets", name)["spec"]["replicas"] == 0


def test_deleted_in_the_foreground_it_stays_until_its_last_pod_is_gone() -> None:
    fixture = deployed(2)
    fixture.delete(APPS, "deployments", "web", "?propagationPolicy=Foreground")
    fixture.settle()
    one, other = fixture.names()
    fixture.end(one)
    fixture.settle()
    assert len(fixture.items(APPS, "deployments")) == 1
    fixture.end(other)
    fixture.settle()
    assert (fixture.items(APPS, "deployments"), fixture.items(APPS, "replicasets")) == ([], [])
