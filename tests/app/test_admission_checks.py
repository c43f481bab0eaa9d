"""The AdmissionCheck `kubenexus.io/placement`: Ready once the whole Workload has a place, and no place twice."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kubenexus.api.codec import from_data
from kubenexus.api.gangs.declaration import KUEUE_WORKLOAD
from kubenexus.api.kueue import AdmissionCheck, KueueWorkload, ResourceFlavor, TopologyAssignment
from kubenexus.app.http.api.waiting_questions import Question
from kubenexus.app.kueue.admission_checks import CONTROLLER, AdmissionCheckController
from kubenexus.app.kueue.workload_job import assigned_domains, workload_job
from kubenexus.base.errors import Malformed
from kubenexus.client.calls import ApiError, Call
from kubenexus.config import load
from kubenexus.config.kueue_settings import KueueSettings, kueue_settings
from kubenexus.plugins import BUILT_IN
from kubenexus.testing.builders import a_node
from tests.app.kueue_objects import pods_of
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

CHECK = "place"


def a_raw_workload(name: str, count: int, cpu: str = "1", **assigned: Any) -> dict[str, Any]:
    """A Workload with quota, as the API server has it, that waits for our check and has passed another."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], "schedulerName": "default-scheduler"}}
    return {
        "metadata": {"name": name, "namespace": "ml", "uid": name, "resourceVersion": "7"},
        "spec": {"podSets": [{"name": "main", "count": count, "template": template}]},
        "status": {
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
            "admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "count": count, **assigned}]},
            "admissionChecks": [
                {"name": "other", "state": "Ready", "message": "kept", "podSetUpdates": [{"name": "main"}]},
                {"name": CHECK, "state": "Pending", "message": ""},
            ],
        },
    }


class KueueServer:
    """An API server with Kueue's objects. It refuses a patch of another version than it has."""

    def __init__(self, *workloads: dict[str, Any]) -> None:
        self.workloads = {each["metadata"]["name"]: each for each in workloads}
        self.flavors: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = [
            {"metadata": {"name": CHECK}, "spec": {"controllerName": "kubenexus.io/placement"}, "status": {}},
            {"metadata": {"name": "other"}, "spec": {"controllerName": "example.com/other"}, "status": {}},
        ]
        self.installed = True

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        path = call.path.partition("?")[0].removesuffix("/status")
        kind, _, name = path.removeprefix("/apis/kueue.x-k8s.io/v1beta2/").partition("/")
        if not self.installed:
            raise ApiError(404)
        if kind == "resourceflavors":
            return msgspec.json.encode({"items": self.flavors})
        if kind == "admissionchecks" and call.method == "GET":
            return msgspec.json.encode({"items": self.checks})
        body = msgspec.json.decode(call.body) if call.body else {}
        if kind == "admissionchecks":
            (check,) = [each for each in self.checks if each["metadata"]["name"] == name]
            check["status"] = body["status"]
            return b"{}"
        found = self.workloads[name.rpartition("/")[2]]
        if call.method == "PATCH":
            if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                raise ApiError(409, "Conflict")
            found["status"] |= body["status"]
        return msgspec.json.encode(found)

    def state(self, name: str) -> str:
        return str(self.check(name)["state"])

    def check(self, name: str) -> dict[str, Any]:
        checks = self.workloads[name]["status"]["admissionChecks"]
        return dict(next(each for each in checks if each["name"] == CHECK))


class SameProcess:
    """Answers in this process, and takes back what the question assumed."""

    def __init__(self, fixture: SchedulerFixture) -> None:
        self._ledger, self.asked = fixture.ledger, 0

    async def answer(self, question: Question) -> bytes:
        before, self.asked = set(self._ledger.pods), self.asked + 1
        try:
            return question()
        finally:
            for key in set(self._ledger.pods) - before:
                self._ledger.forget(key)

    async def close(self) -> None: ...


def controller(fixture: SchedulerFixture, server: KueueServer) -> AdmissionCheckController:
    scheduler = fixture.scheduler
    for raw in server.workloads.values():
        fixture.handlers.objects.on_update(KUEUE_WORKLOAD, from_data(raw, KueueWorkload))
    return AdmissionCheckController(
        server,
        fixture.ledger,
        scheduler.planners,
        scheduler.registry,
        copies=SameProcess(fixture),
        clock=fixture.clock,
        enabled=True,
    )


@pytest.mark.parametrize(
    ("nodes", "state"),
    [
        pytest.param([2, 2], "Ready", id="four pods on two nodes of two"),
        pytest.param([3], "Retry", id="not on one of three"),
        pytest.param([1, 1, 1], "Retry", id="nor on three of one"),
    ],
)
def test_a_workload_is_ready_when_all_its_pods_have_a_place(nodes: list[int], state: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=cpu) for i, cpu in enumerate(nodes)))
        server = KueueServer(a_raw_workload("w", 4))
        await controller(fixture, server).step()
        assert server.state("w") == state
        if state == "Retry":
            assert "3 of at least 4 members fit in the whole cluster" in server.check("w")["message"]
            assert server.check("w")["requeueAfterSeconds"] == 5
        kept = server.workloads["w"]["status"]["admissionChecks"][0]
        assert kept == {"name": "other", "state": "Ready", "message": "kept", "podSetUpdates": [{"name": "main"}]}
        assert not fixture.ledger.pods, "nothing is left behind"

    scheduler_test(life)


def test_fragments_do_not_make_a_place() -> None:
    """Enough in sum, which is all that quota sees: four pods of two CPUs, and one is left on each of eight nodes."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(8)))
        server = KueueServer(a_raw_workload("w", 4, cpu="2"))
        await controller(fixture, server).step()
        assert server.state("w") == "Retry"

    scheduler_test(life)


def test_a_place_is_promised_once_until_the_pods_are_there_or_the_workload_is_gone() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        server = KueueServer(a_raw_workload("first", 3), a_raw_workload("second", 3))
        checks = controller(fixture, server)
        await checks.step()
        assert (server.state("first"), server.state("second")) == ("Ready", "Retry")
        fixture.handlers.objects.on_delete(KUEUE_WORKLOAD, "ml/first")
        server.workloads["second"]["status"]["admissionChecks"][1]["state"] = "Pending"
        await checks.step()
        assert server.state("second") == "Ready"

    scheduler_test(life)


def test_pods_that_have_arrived_do_not_count_twice() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        server = KueueServer(a_raw_workload("first", 2), a_raw_workload("second", 2))
        checks = controller(fixture, server)
        fixture.ledger.kueue_workloads.remove("ml/second")
        await checks.step()
        assert server.state("first") == "Ready"
        for raw in server.workloads.values():
            fixture.handlers.objects.on_update(KUEUE_WORKLOAD, from_data(raw, KueueWorkload))
        fixture.pods(*pods_of("first", 2, "ml", node="n"))
        await checks.step()
        assert server.state("second") == "Ready"

    scheduler_test(life)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"flavors": {"cpu": "gone"}}, "the ResourceFlavor gone does not exist", id="a flavor is missing"),
        pytest.param({"pods": 20_000}, "more than 10000 pods", id="too many pods"),
    ],
)
def test_a_workload_that_cannot_be_judged_is_refused_with_the_reason(change: dict[str, Any], message: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        server = KueueServer(a_raw_workload("w", change.pop("pods", 2), **change))
        await controller(fixture, server).step()
        assert server.state("w") == "Retry"
        assert message in server.check("w")["message"]

    scheduler_test(life)


def test_pods_of_another_scheduler_are_not_ours_to_judge() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        raw = a_raw_workload("w", 2)
        raw["spec"]["podSets"][0]["template"]["spec"]["schedulerName"] = "another"
        server = KueueServer(raw)
        await controller(fixture, server).step()
        assert server.check("w")["message"] == "its pods name the scheduler another, which is another"

    scheduler_test(life)


def test_checks_of_others_are_left_alone_and_ours_become_active() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        server = KueueServer(a_raw_workload("w", 2))
        await controller(fixture, server).step()
        ours, others = server.checks
        assert ours["status"]["conditions"][0]["type"] == "Active"
        assert others["status"] == {}

    scheduler_test(life)


def test_a_workload_that_changed_meanwhile_is_answered_in_a_later_round_and_kueue_may_be_absent() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        server = KueueServer(a_raw_workload("w", 2))
        checks = controller(fixture, server)
        server.installed = False
        await checks.step()
        assert server.state("w") == "Pending"
        server.installed = True
        fixture.clock.advance(11.0)
        await checks.step()
        assert server.state("w") == "Ready"

    scheduler_test(life)


# --- the pods --------------------------------------------------------------------------------------------------------

FLAVOR = {
    "metadata": {"name": "gpu"},
    "spec": {"nodeLabels": {"pool": "gpu"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]},
}
SLICES = {
    "levels": ["rack", "kubernetes.io/hostname"],
    "slices": [
        {
            "domainCount": 2,
            "valuesPerLevel": [
                {"universal": "r1"},
                {"individual": {"prefix": "node-", "suffix": ".x", "roots": ["1", "2"]}},
            ],
            "podCounts": {"individual": [2, 1]},
        }
    ],
}
DOMAINS = {
    "levels": ["rack", "kubernetes.io/hostname"],
    "domains": [{"values": ["r1", "node-1.x"], "count": 2}, {"values": ["r1", "node-2.x"], "count": 1}],
}


@pytest.mark.parametrize(
    "assigned", [pytest.param(SLICES, id="slices of v1beta2"), pytest.param(DOMAINS, id="domains of v1beta1")]
)
def test_the_pods_have_what_kueue_will_put_on_them(assigned: dict[str, Any]) -> None:
    raw = a_raw_workload("w", 3, flavors={"cpu": "gpu"}, topologyAssignment=assigned)
    job = workload_job(from_data(raw, KueueWorkload), {"gpu": from_data(FLAVOR, ResourceFlavor)})
    assert (job.key, job.minimum, len(job.pods)) == ("ml/kueue/w", 3, 3)
    hosts = [pod.spec.node_selector["kubernetes.io/hostname"] for pod in job.pods]
    assert hosts == ["node-1.x", "node-1.x", "node-2.x"]
    assert {(pod.spec.node_selector["rack"], pod.spec.node_selector["pool"]) for pod in job.pods} == {("r1", "gpu")}
    assert [each.key for each in job.pods[0].spec.tolerations] == ["gpu"]


def test_an_assignment_with_too_few_values_is_no_job() -> None:
    cut: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(SLICES))
    cut["slices"][0]["domainCount"] = 3
    with pytest.raises(Malformed, match="fewer values than domains"):
        list(assigned_domains(from_data(cut, TopologyAssignment)))


def test_a_status_with_two_billion_domains_without_pods_is_refused_at_once() -> None:
    empty = {"valuesPerLevel": [{"universal": "r1"}], "domainCount": 2**31 - 1, "podCounts": {"universal": 0}}
    assigned = {"levels": ["rack"], "slices": [empty]}
    raw = a_raw_workload("w", 3, flavors={"cpu": "gpu"}, topologyAssignment=assigned)
    with pytest.raises(Malformed, match="a domain without pods"):
        workload_job(from_data(raw, KueueWorkload), {"gpu": from_data(FLAVOR, ResourceFlavor)})


EXAMPLES = Path(__file__).parents[2] / "examples" / "kueue"


def test_the_example_switches_the_controller_on_and_names_it() -> None:
    configured = load((EXAMPLES / "scheduler-config.yaml").read_text(encoding="utf-8"), BUILT_IN)
    assert kueue_settings(configured.args) == KueueSettings(admission_checks=True)
    assert kueue_settings({}) == KueueSettings(admission_checks=False)
    things = list(yaml.safe_load_all((EXAMPLES / "queues.yaml").read_text(encoding="utf-8")))
    (check,) = [from_data(each, AdmissionCheck) for each in things if each["kind"] == "AdmissionCheck"]
    assert check.spec.controller_name == CONTROLLER
