"""What is written into device claims before a bind, and what becomes of it when something goes wrong."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod, PodResourceClaim, SchedulingGroup
from kubenexus.api.devices.resource_claim import FINALIZER, AllocationResult, ResourceClaim
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import PodGroup, PodGroupSpec
from kubenexus.base.clock import VirtualClock
from kubenexus.bind.claim_prebind import ClaimPreBind
from kubenexus.bind.job_binding import PodBinding
from kubenexus.client.calls import ApiError, Call
from kubenexus.framework.decision import Decision, Diagnosis
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.plugins.dynamic_resources.plugin import DynamicResources
from kubenexus.state.claims.store import ClaimChoice
from kubenexus.state.footprint import footprint_of
from kubenexus.state.ledger import Ledger
from kubenexus.state.object_kinds import apply_object
from kubenexus.testing.builders import a_node, a_pod
from tests.async_helpers import HANGS
from tests.bind.server import LOST, SILENT, Guard
from tests.plugins.dynamic_resources.cluster import a_device, a_slice, a_spec

CONFLICT = ApiError(409, "Conflict", "the object has been modified")
GIVEN: dict[str, Any] = {
    "devices": {"results": [{"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "d0"}]}
}
Claim = dict[str, Any]


class ClaimServer:
    """One claim. `script` has for each write an exception instead of an answer, LOST, or None."""

    def __init__(self) -> None:
        self.claim: Claim | None = {
            "metadata": {"name": "c", "namespace": "default", "uid": "u", "resourceVersion": "1"},
            "spec": {},
            "status": {},
        }
        self.script: deque[Exception | str | None] = deque()
        self.writes: list[str] = []
        self.meddle: Callable[[Claim], None] = lambda claim: None  # before a claim is read again

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        await asyncio.sleep(0)
        if self.claim is None:
            raise ApiError(404, "NotFound", "not found")
        if call.method == "GET":
            self.meddle(self.claim)
            return msgspec.json.encode(self.claim)
        self.writes.append(call.path.rpartition("/")[2])
        fault = self.script.popleft() if self.script else None
        if isinstance(fault, Exception):
            raise fault
        body = msgspec.json.decode(call.body)
        if body["metadata"]["resourceVersion"] != self.claim["metadata"]["resourceVersion"]:
            raise CONFLICT
        if "finalizers" in body["metadata"]:
            self.claim["metadata"]["finalizers"] = body["metadata"]["finalizers"]
        for key, value in body.get("status", {}).items():
            self.claim["status"] = {**self.claim["status"], key: value}
            if value is None:
                del self.claim["status"][key]
        self.claim["metadata"]["resourceVersion"] = str(int(self.claim["metadata"]["resourceVersion"]) + 1)
        if fault == LOST:
            raise SILENT
        return msgspec.json.encode(self.claim)


class Fixture:
    """A pod that was placed with a device for its claim, or with one that the claim has already."""

    def __init__(self, allocated: bool = False, group: bool = False) -> None:
        self.server, self.ledger, self.guard = ClaimServer(), Ledger(), Guard()
        self.ledger.upsert_node(a_node("n1"))
        self.ledger.upsert_resource_slice(a_slice("s", [a_device("d0"), a_device("d1")]))
        if allocated and self.server.claim is not None:
            self.server.claim["status"] = {"allocation": GIVEN}
        self.seen()
        claims = [PodResourceClaim(name="gpu", resource_claim_name="c")]
        self.pod: Pod = a_pod("p", resource_claims=claims)
        if group:
            self.pod = in_group(self.pod)
            meta = ObjectMeta(name="g", namespace="default", uid="group")
            apply_object(self.ledger, "PodGroup", PodGroup(metadata=meta, spec=PodGroupSpec(resource_claims=claims)))
        choices = () if allocated else (ClaimChoice(0, from_data(GIVEN, AllocationResult), a_spec()),)
        with self.ledger.transaction() as transaction:
            transaction.place(self.pod, "n1", footprint_of(self.pod), claims=choices)
            transaction.commit(1.0)
        self.point = ClaimPreBind(
            self.server,
            self.guard,
            self.ledger.nodes.claims,
            self.ledger.pods,
            self.ledger.upsert_resource_claim,
            VirtualClock(1_000_000.0),
            sleep=lambda seconds: asyncio.sleep(0),
        )
        self.binding = PodBinding(self.pod, "n1")

    def seen(self) -> None:
        """The watch brings the claim as it is."""
        assert self.server.claim is not None
        self.ledger.upsert_resource_claim(from_data(self.server.claim, ResourceClaim))

    @property
    def status(self) -> Claim:
        assert self.server.claim is not None
        found: Claim = self.server.claim["status"]
        return found

    @property
    def held(self) -> frozenset[str]:
        return frozenset(self.ledger.nodes.claims.allocated.in_pool(("gpu.example.com", "n1")))


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(HANGS):
            await story()

    asyncio.run(bounded())


def in_group(pod: Pod) -> Pod:
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, scheduling_group=SchedulingGroup(pod_group_name="g"))
    )


def users(status: Claim) -> list[str]:
    return [each["name"] for each in status.get("reservedFor", [])]


def test_the_finalizer_comes_first_then_allocation_and_reservation_in_one_write() -> None:
    async def story() -> None:
        fixture = Fixture()
        assert fixture.held == {"d0"}
        assert await fixture.point.pre_bind(fixture.binding) == ""
        assert fixture.server.writes == ["c", "status"]
        assert fixture.server.claim is not None
        assert fixture.server.claim["metadata"]["finalizers"] == [FINALIZER]
        assert [each["device"] for each in fixture.status["allocation"]["devices"]["results"]] == ["d0"]
        assert users(fixture.status) == ["p"]
        fixture.ledger.forget("default/p")
        assert fixture.held == {"d0"}, "the claim holds it now, before the watch has shown that"

    play(story)


def test_a_claim_that_is_allocated_is_only_reserved() -> None:
    async def story() -> None:
        fixture = Fixture(allocated=True)
        assert await fixture.point.pre_bind(fixture.binding) == ""
        assert (fixture.server.writes, users(fixture.status)) == (["status"], ["p"])
        assert await fixture.point.pre_bind(fixture.binding) == ""
        assert fixture.server.writes == ["status"], "a second time there is nothing to write"

    play(story)


@pytest.mark.parametrize(
    "fault", [pytest.param(CONFLICT, id="a conflict"), pytest.param(LOST, id="an answer that is lost")]
)
def test_f15_a_write_without_an_answer_keeps_its_devices(fault: Exception | str) -> None:
    async def story() -> None:
        fixture = Fixture()
        fixture.server.script.extend([None, fault])
        assert await fixture.point.pre_bind(fixture.binding) == ""
        assert users(fixture.status) == ["p"]
        assert fixture.held == {"d0"}

    play(story)


def elsewhere(claim: Claim) -> None:
    claim["status"] = {"allocation": {"devices": {"results": [{**GIVEN["devices"]["results"][0], "device": "d1"}]}}}
    claim["metadata"]["resourceVersion"] = "9"


def deleted(claim: Claim) -> None:
    claim["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "9"}


def another(claim: Claim) -> None:
    claim["metadata"] |= {"uid": "other", "resourceVersion": "9"}


@pytest.mark.parametrize(
    ("meddle", "problem"),
    [
        pytest.param(elsewhere, "got allocated elsewhere in the meantime", id="another scheduler was faster"),
        pytest.param(deleted, "got deleted in the meantime", id="it is being deleted"),
        pytest.param(another, "is another one by now", id="it was deleted and created again"),
    ],
)
def test_a_claim_that_changed_in_the_meantime(meddle: Callable[[Claim], None], problem: str) -> None:
    async def story() -> None:
        fixture = Fixture()
        fixture.server.script.append(CONFLICT)
        fixture.server.meddle = meddle
        assert problem in await fixture.point.pre_bind(fixture.binding)

    play(story)


def test_a_claim_that_is_gone() -> None:
    async def story() -> None:
        fixture = Fixture()
        fixture.server.claim = None
        assert "not found" in await fixture.point.pre_bind(fixture.binding)

    play(story)


def test_f43_what_was_written_for_a_pod_that_is_not_bound_is_taken_back() -> None:
    async def story() -> None:
        fixture = Fixture()
        assert await fixture.point.pre_bind(fixture.binding) == ""
        await fixture.point.un_bind(fixture.binding)
        assert fixture.status == {}
        fixture.ledger.forget("default/p")
        assert fixture.held == frozenset()

    play(story)


def test_an_allocation_that_another_pod_uses_stays() -> None:
    async def story() -> None:
        fixture = Fixture()
        assert await fixture.point.pre_bind(fixture.binding) == ""
        fixture.status["reservedFor"].append({"resource": "pods", "name": "q", "uid": "q"})
        assert fixture.server.claim is not None
        fixture.server.claim["metadata"]["resourceVersion"] = "9"
        fixture.seen()
        await fixture.point.un_bind(fixture.binding)
        assert users(fixture.status) == ["q"]
        assert "allocation" in fixture.status

    play(story)


@pytest.mark.parametrize(
    ("reason", "user", "left"),
    [
        pytest.param(DynamicResources.AWAY.text, "", False, id="nobody uses it"),
        pytest.param(DynamicResources.AWAY.text, "p", False, id="the pod alone uses it"),
        pytest.param(DynamicResources.AWAY.text, "q", True, id="another pod uses it"),
        pytest.param("Insufficient cpu", "", True, id="the claim keeps the pod from no node"),
    ],
)
def test_a_claim_that_keeps_its_pod_from_nodes_is_deallocated(reason: str, user: str, left: bool) -> None:
    async def story() -> None:
        fixture = Fixture(allocated=True)
        if user:
            uid = fixture.pod.metadata.uid if user == "p" else user
            fixture.status["reservedFor"] = [{"resource": "pods", "name": user, "uid": uid}]
            fixture.seen()
        diagnosis = Diagnosis(1, ((reason, 1),), ("DynamicResources",))
        decision = Decision("default/p", Code.UNSCHEDULABLE, 0, 0.0, diagnosis=diagnosis)
        fixture.point.on_refused(Job.of(fixture.pod), decision)
        for _ in range(10):
            await asyncio.sleep(0)
        assert ("allocation" in fixture.status) == left

    play(story)


def test_nothing_is_written_by_a_process_that_does_not_lead() -> None:
    async def story() -> None:
        fixture = Fixture()
        fixture.guard.leads = False
        assert await fixture.point.pre_bind(fixture.binding) == "this process does not lead any more"
        assert fixture.server.writes == []

    play(story)


def test_a_device_with_binding_conditions_is_waited_for() -> None:
    async def story() -> None:
        fixture = Fixture(allocated=True)
        result = fixture.status["allocation"]["devices"]["results"][0]
        conditions = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
        fixture.status["allocation"] = {"devices": {"results": [{**result, **conditions}]}}
        fixture.seen()
        waiting = asyncio.ensure_future(fixture.point.pre_bind(fixture.binding))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        said = {"type": "Broken", "status": "True", "reason": "Cable", "message": "no link"}
        named = {key: result[key] for key in ("driver", "pool", "device")}
        fixture.status["devices"] = [{**named, "conditions": [said]}]
        fixture.seen()
        fixture.point.on_claim_changed("default/c")
        assert await waiting == "device binding failed: claim=c, reason=Cable, message='no link'"

    play(story)
