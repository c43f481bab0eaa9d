"""StatefulSets: names, order, claims, updates."""

from tests.sim.controllers.controller_fixture import APPS, CORE, ControllerFixture, Json, sized

IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}


def a_set(replicas: int, **more: object) -> ControllerFixture:
    fixture = ControllerFixture()
    fixture.apply(APPS, "statefulsets", "db", sized("db", replicas, serviceName="db", **more))
    fixture.settle()
    return fixture


def status(fixture: ControllerFixture) -> Json:
    return dict(fixture.get(APPS, "statefulsets", "db")["status"])


def images(fixture: ControllerFixture) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in fixture.pods()}


def test_each_waits_until_the_one_before_is_ready() -> None:
    fixture = a_set(3)
    assert fixture.names() == ["db-0"]
    fixture.bind("db-0")
    fixture.say("db-0", "Running", "False")
    fixture.settle()
    assert fixture.names() == ["db-0"]
    fixture.say("db-0", "Running", "True")
    fixture.settle()
    assert fixture.names() == ["db-0", "db-1"]
    fixture.busy()
    assert fixture.names() == ["db-0", "db-1", "db-2"]
    assert (status(fixture)["readyReplicas"], status(fixture)["currentRevision"]) == (
        3,
        status(fixture)["updateRevision"],
    )


def test_a_pod_knows_its_number() -> None:
    fixture = a_set(2, ordinals={"start": 5})
    fixture.busy()
    assert fixture.names() == ["db-5", "db-6"]
    pod = fixture.get(CORE, "pods", "db-6")
    labels = pod["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-6"
    assert labels["apps.kubernetes.io/pod-index"] == "6"
    assert labels["controller-revision-hash"] == status(fixture)["updateRevision"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-6", "db")


def test_parallel_waits_for_nobody() -> None:
    fixture = a_set(3, podManagementPolicy="Parallel")
    assert fixture.names() == ["db-0", "db-1", "db-2"]


def test_the_last_goes_first_and_one_at_a_time() -> None:
    fixture = a_set(4)
    fixture.busy()
    fixture.patch(APPS, "statefulsets", "db", {"spec": {"replicas": 1}})
    fixture.settle()
    going = [pod["metadata"]["name"] for pod in fixture.pods() if "deletionTimestamp" in pod["metadata"]]
    assert going == ["db-3"]
    fixture.busy()
    assert fixture.names() == ["db-0"]


def test_a_pod_that_is_gone_comes_back_under_its_name() -> None:
    fixture = a_set(3)
    fixture.busy()
    before = fixture.get(CORE, "pods", "db-1")["metadata"]["uid"]
    fixture.end("db-1")
    fixture.busy()
    assert fixture.get(CORE, "pods", "db-1")["metadata"]["uid"] != before
    assert len(fixture.names()) == 3


def test_a_pod_that_failed_is_replaced() -> None:
    fixture = a_set(1)
    fixture.busy()
    before = fixture.get(CORE, "pods", "db-0")["metadata"]["uid"]
    fixture.finish("db-0", "Failed")
    fixture.busy()
    assert fixture.get(CORE, "pods", "db-0")["metadata"]["uid"] != before


def test_an_update_goes_from_the_last_to_the_first() -> None:
    fixture = a_set(3)
    fixture.busy()
    fixture.patch(APPS, "statefulsets", "db", IMAGE_2)
    fixture.settle()
    assert [p["metadata"]["name"] for p in fixture.pods() if "deletionTimestamp" in p["metadata"]] == ["db-2"]
    assert status(fixture)["currentRevision"] != status(fixture)["updateRevision"]
    fixture.busy()
    assert set(images(fixture).values()) == {"i:2"}
    assert status(fixture)["currentRevision"] == status(fixture)["updateRevision"]


def test_a_partition_keeps_those_before_it() -> None:
    fixture = a_set(3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    fixture.busy()
    fixture.patch(APPS, "statefulsets", "db", IMAGE_2)
    fixture.busy()
    assert images(fixture) == {"db-0": "i:1", "db-1": "i:1", "db-2": "i:2"}


def test_claims_are_made_and_kept() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    fixture = a_set(2, volumeClaimTemplates=[claim])
    fixture.busy()
    names = [each["metadata"]["name"] for each in fixture.items(CORE, "persistentvolumeclaims")]
    assert names == ["data-db-0", "data-db-1"]
    volumes = fixture.get(CORE, "pods", "db-1")["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]
    fixture.end("db-1")
    fixture.busy()
    assert len(fixture.items(CORE, "persistentvolumeclaims")) == 2
    assert fixture.names() == ["db-0", "db-1"]
