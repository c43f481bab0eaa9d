"""StatefulSets: names, order, claims, updates."""

from tests.sim.controllers.towns import APPS, CORE, Json, Town, sized

IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}


def a_set(replicas: int, **more: object) -> Town:
    town = Town()
    town.apply(APPS, "statefulsets", "db", sized("db", replicas, serviceName="db", **more))
    town.settle()
    return town


def status(town: Town) -> Json:
    return dict(town.get(APPS, "statefulsets", "db")["status"])


def images(town: Town) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in town.pods()}


def test_each_waits_until_the_one_before_is_ready() -> None:
    town = a_set(3)
    assert town.names() == ["db-0"]
    town.bind("db-0")
    town.say("db-0", "Running", "False")
    town.settle()
    assert town.names() == ["db-0"]
    town.say("db-0", "Running", "True")
    town.settle()
    assert town.names() == ["db-0", "db-1"]
    town.busy()
    assert town.names() == ["db-0", "db-1", "db-2"]
    assert (status(town)["readyReplicas"], status(town)["currentRevision"]) == (3, status(town)["updateRevision"])


def test_a_pod_knows_its_number() -> None:
    town = a_set(2, ordinals={"start": 5})
    town.busy()
    assert town.names() == ["db-5", "db-6"]
    pod = town.get(CORE, "pods", "db-6")
    labels = pod["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-6"
    assert labels["apps.kubernetes.io/pod-index"] == "6"
    assert labels["controller-revision-hash"] == status(town)["updateRevision"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-6", "db")


def test_parallel_waits_for_nobody() -> None:
    town = a_set(3, podManagementPolicy="Parallel")
    assert town.names() == ["db-0", "db-1", "db-2"]


def test_the_last_goes_first_and_one_at_a_time() -> None:
    town = a_set(4)
    town.busy()
    town.patch(APPS, "statefulsets", "db", {"spec": {"replicas": 1}})
    town.settle()
    going = [pod["metadata"]["name"] for pod in town.pods() if "deletionTimestamp" in pod["metadata"]]
    assert going == ["db-3"]
    town.busy()
    assert town.names() == ["db-0"]


def test_a_pod_that_is_gone_comes_back_under_its_name() -> None:
    town = a_set(3)
    town.busy()
    before = town.get(CORE, "pods", "db-1")["metadata"]["uid"]
    town.end("db-1")
    town.busy()
    assert town.get(CORE, "pods", "db-1")["metadata"]["uid"] != before
    assert len(town.names()) == 3


def test_a_pod_that_failed_is_replaced() -> None:
    town = a_set(1)
    town.busy()
    before = town.get(CORE, "pods", "db-0")["metadata"]["uid"]
    town.finish("db-0", "Failed")
    town.busy()
    assert town.get(CORE, "pods", "db-0")["metadata"]["uid"] != before


def test_an_update_goes_from_the_last_to_the_first() -> None:
    town = a_set(3)
    town.busy()
    town.patch(APPS, "statefulsets", "db", IMAGE_2)
    town.settle()
    assert [p["metadata"]["name"] for p in town.pods() if "deletionTimestamp" in p["metadata"]] == ["db-2"]
    assert status(town)["currentRevision"] != status(town)["updateRevision"]
    town.busy()
    assert set(images(town).values()) == {"i:2"}
    assert status(town)["currentRevision"] == status(town)["updateRevision"]


def test_a_partition_keeps_those_before_it() -> None:
    town = a_set(3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    town.busy()
    town.patch(APPS, "statefulsets", "db", IMAGE_2)
    town.busy()
    assert images(town) == {"db-0": "i:1", "db-1": "i:1", "db-2": "i:2"}


def test_claims_are_made_and_kept() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    town = a_set(2, volumeClaimTemplates=[claim])
    town.busy()
    names = [each["metadata"]["name"] for each in town.items(CORE, "persistentvolumeclaims")]
    assert names == ["data-db-0", "data-db-1"]
    volumes = town.get(CORE, "pods", "db-1")["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]
    town.end("db-1")
    town.busy()
    assert len(town.items(CORE, "persistentvolumeclaims")) == 2
    assert town.names() == ["db-0", "db-1"]
