"""ProvisioningRequests for gangs that do not fit: made once, followed, deleted, bounded, and off by default."""

import asyncio
import re
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.provisioning import provisioning_requests
from kubenexus.app.provisioning.provisioning_requests import DELAY, READ_SECONDS, REST, ProvisioningRequests
from kubenexus.app.provisioning.request_objects import request_name
from kubenexus.client.calls import ApiError, Call
from kubenexus.testing.builders import a_node
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_gangs import gang

CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig: [{{name: Coscheduling, args: {{provisioningClassName: {CLASS}}}}}]
"""
REQUESTS, TEMPLATES = "provisioningrequests", "podtemplates"


class Autoscaler:
    """An API server with pods, PodTemplates and ProvisioningRequests."""

    def __init__(self, fixture: SchedulerFixture) -> None:
        self._fixture, self._numbers = fixture, 0
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.served, self.calls = True, list[str]()
        self.refuses = self.refuses_name = ""

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        path = call.path.partition("?")[0]
        parts = path.partition("/v1/")[2].removeprefix("namespaces/default/").split("/")
        kind, name = parts[0], parts[-1]
        self.calls.append(f"{call.method} {kind}")
        if not self.served and "autoscaling" in path:
            raise ApiError(404)
        if kind == "pods":
            return self._pod(name)
        if call.method == "GET":
            return msgspec.json.encode({"items": [each for (k, _), each in self.objects.items() if k == REQUESTS]})
        if call.method == "DELETE":
            return self._delete(kind, name, call)
        body = msgspec.json.decode(call.body)
        key = kind, body["metadata"]["name"]
        if self.refuses == kind or self.refuses_name == key[1] or key in self.objects:
            raise ApiError(409 if key in self.objects else 422)
        self._numbers += 1
        body["metadata"]["uid"] = f"uid-{self._numbers}"
        self.objects[key] = body
        return msgspec.json.encode(body)

    def _pod(self, name: str) -> bytes:
        pod = self._fixture.server.pods[f"default/{name}"]
        spec = {"nodeName": "", "containers": [{"name": "main"}], "nodeSelector": {"a": "b"}}
        meta = {"name": name, "namespace": "default", "uid": pod.metadata.uid, "labels": {"app": "x"}}
        return msgspec.json.encode({"metadata": meta, "spec": spec})

    def _delete(self, kind: str, name: str, call: Call) -> bytes:
        found = self.objects.get((kind, name))
        wanted = msgspec.json.decode(call.body)["preconditions"]["uid"]
        if found is None or found["metadata"]["uid"] != wanted:
            raise ApiError(404 if found is None else 409)
        owned = [key for key, each in self.objects.items() if each["metadata"]["ownerReferences"][0]["uid"] == wanted]
        for key in [(kind, name), *owned]:
            del self.objects[key]
        return b"{}"

    def names(self, kind: str) -> list[str]:
        return [name for each, name in self.objects if each == kind]

    def says(self, condition: str) -> None:
        for (kind, _), each in self.objects.items():
            if kind == REQUESTS:
                each["status"] = {"conditions": [{"type": condition, "status": "True"}]}


def requests_of(fixture: SchedulerFixture) -> tuple[ProvisioningRequests, Autoscaler]:
    found, server = fixture.scheduler.provisioning, Autoscaler(fixture)
    found._api = server
    return found, server


async def after(fixture: SchedulerFixture, found: ProvisioningRequests, seconds: float) -> None:
    fixture.clock.advance(seconds)
    await fixture.work()
    await found.step()


async def refused(fixture: SchedulerFixture, *names: str, size: int = 4) -> tuple[ProvisioningRequests, Autoscaler]:
    """Gangs of pods with 2 CPUs each that one node of 4 CPUs does not hold."""
    fixture.nodes(a_node("n", cpu=4))
    for name in names:
        fixture.pods(*gang(name, size, cpu=2))
    await fixture.work()
    found, server = requests_of(fixture)
    await found.step()
    assert not server.objects, "not at once"
    await after(fixture, found, DELAY)
    return found, server


def test_a_gang_that_does_not_fit_gets_one_request_with_its_templates() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        found, server = await refused(fixture, "llama")
        (request,) = server.names(REQUESTS)
        (template,) = server.names(TEMPLATES)
        body = server.objects[REQUESTS, request]
        assert body["spec"] == {
            "provisioningClassName": CLASS,
            "podSets": [{"count": 4, "podTemplateRef": {"name": template}}],
        }
        assert body["apiVersion"] == "autoscaling.x-k8s.io/v1"
        assert body["metadata"]["ownerReferences"][0]["kind"] == "Pod"
        made = server.objects[TEMPLATES, template]
        assert made["template"]["spec"] == {"containers": [{"name": "main"}], "nodeSelector": {"a": "b"}}
        await after(fixture, found, 100.0)
        assert server.names(REQUESTS) == [request]

    scheduler_test(life, CONFIG)


def test_it_is_deleted_when_the_gang_is_placed() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        found, server = await refused(fixture, "llama")
        fixture.nodes(a_node("n2", cpu=4))
        await after(fixture, found, 30.0)
        assert len(fixture.bound()) == 4
        assert not server.objects

    scheduler_test(life, CONFIG)


def test_it_is_deleted_when_the_gang_is_gone() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        found, server = await refused(fixture, "llama")
        for key in list(fixture.server.pods):
            fixture.delete(key)
        await after(fixture, found, 5.0)
        assert not server.objects

    scheduler_test(life, CONFIG)


def test_the_gang_is_tried_when_its_nodes_have_come_and_asks_again_later_when_they_cannot() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        found, server = await refused(fixture, "llama")
        tried: list[str] = []
        fixture.queue.activate = tried.append  # type: ignore[method-assign, assignment]
        server.says("Provisioned")
        await after(fixture, found, READ_SECONDS)
        await after(fixture, found, READ_SECONDS)
        assert tried == ["default/gang/llama"], "once"
        server.says("Failed")
        await after(fixture, found, READ_SECONDS)
        assert not server.objects
        await after(fixture, found, REST - 1.0)
        assert not server.objects
        await after(fixture, found, 2.0)
        assert len(server.names(REQUESTS)) == 1

    scheduler_test(life, CONFIG)


def test_without_the_kind_one_look_in_a_while_is_all() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(*gang("llama", 4, cpu=2))
        await fixture.work()
        found, server = requests_of(fixture)
        server.served = False
        for _ in range(6):
            await after(fixture, found, READ_SECONDS / 3)
        assert set(server.calls) == {f"GET {REQUESTS}"}
        assert len(server.calls) <= 3
        server.served = True
        await after(fixture, found, READ_SECONDS)
        assert len(server.names(REQUESTS)) == 1, "and it is found when it is installed"

    scheduler_test(life, CONFIG)


def test_a_template_that_is_refused_leaves_nothing_behind() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(*gang("llama", 4, cpu=2))
        await fixture.work()
        found, server = requests_of(fixture)
        server.refuses = TEMPLATES
        await after(fixture, found, DELAY)
        assert not server.objects

    scheduler_test(life, CONFIG)


def test_objects_of_others_stay_and_those_of_an_earlier_process_go() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        found, server = requests_of(fixture)
        owner = {"ownerReferences": [{"uid": "pod"}]}
        server.objects[REQUESTS, "old"] = {"metadata": {"name": "old", "namespace": "default", "uid": "old"} | owner}
        server.objects[TEMPLATES, "x"] = {"metadata": {"name": "x", "namespace": "default", "uid": "x"} | owner}
        await found.step()
        assert list(server.objects) == [(TEMPLATES, "x")]

    scheduler_test(life, CONFIG)


def test_a_namespace_has_a_bounded_number_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisioning_requests, "MOST_OF_NAMESPACE", 2)

    async def life(fixture: SchedulerFixture) -> None:
        _, server = await refused(fixture, "a", "b", "c")
        assert len(server.names(REQUESTS)) == 2

    scheduler_test(life, CONFIG)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("train", "Train", id="another case"),
        pytest.param("a_b", "a-b", id="a character that objects do not have"),
        pytest.param("x" * 250, "x" * 251, id="long names"),
    ],
)
def test_gangs_have_names_of_their_own_that_an_api_server_takes(one: str, other: str) -> None:
    assert request_name(one) != request_name(other)


@pytest.mark.parametrize("group", ["llama", "a.b-c", "a_.b", "a..b", "A", "_", "x" * 300, "a--b", "\u00c4"])
def test_names_of_requests_are_names_of_objects(group: str) -> None:
    name = request_name(group)
    assert len(name) <= 240
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", part) for part in name.split("."))
    assert (name == f"{group}-nodes") == (group in ("llama", "a.b-c", "a--b"))


def test_two_gangs_with_one_request_end_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisioning_requests, "request_name", lambda group: "same")

    async def life(fixture: SchedulerFixture) -> None:
        found, server = await refused(fixture, "a", "b")
        assert server.names(REQUESTS) == ["same"]
        server.says("Failed")
        await after(fixture, found, READ_SECONDS)
        assert not server.objects

    scheduler_test(life, CONFIG)


def test_a_gang_may_be_refused_while_requests_are_deleted() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        found, server = await refused(fixture, "a", "b")
        server.says("Failed")
        send = server.send

        async def slowly(call: Call, *, timeout: float = 10.0) -> bytes:
            if call.method == "DELETE" and "default/c-0" not in fixture.server.pods:
                fixture.pods(*gang("c", 4, cpu=3))
                await fixture.work()
            return await send(call, timeout=timeout)

        server.send = slowly  # type: ignore[method-assign]
        await after(fixture, found, READ_SECONDS)
        await after(fixture, found, DELAY)
        assert server.names(REQUESTS) == ["c-nodes"]

    scheduler_test(life, CONFIG)


def test_a_request_that_is_refused_rests_and_those_of_others_are_made() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        for name, cpu in (("first", 2), ("second", 3)):
            fixture.pods(*gang(name, 4, cpu=cpu))
            await fixture.work()
        found, server = requests_of(fixture)
        server.refuses_name = "first-nodes"
        for _ in range(3):
            await after(fixture, found, DELAY)
        assert server.names(REQUESTS) == ["second-nodes"]
        assert server.calls.count(f"POST {REQUESTS}") == 2, "the refused one rests"

    scheduler_test(life, CONFIG)


def test_gangs_of_one_class_are_looked_at_once_in_a_round() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        found, server = await refused(fixture, *[f"g{i}" for i in range(20)])
        assert len(server.names(REQUESTS)) == provisioning_requests.MOST_OF_NAMESPACE
        looks: list[str] = []
        job = fixture.queue.job
        fixture.queue.job = lambda key: looks.append(key) or job(key)  # type: ignore[method-assign, func-returns-value]
        found._want_alike()
        assert not looks, "the namespace has all the requests that it may have"

    scheduler_test(life, CONFIG)


def test_it_is_off_by_default_and_not_for_single_pods() -> None:
    async def off(fixture: SchedulerFixture) -> None:
        found, server = await refused(fixture, "llama")
        assert not found.is_on
        assert not server.objects

    scheduler_test(off)

    async def single(fixture: SchedulerFixture) -> None:
        from kubenexus.testing.builders import a_pod

        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(a_pod("large", cpu=9))
        await fixture.work()
        found, server = requests_of(fixture)
        await after(fixture, found, DELAY)
        assert not server.objects

    scheduler_test(single, CONFIG)


def test_members_are_signed_in_portions_and_never_in_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """To sign ten thousand would hold the loop for a tenth of a second or more."""
    monkeypatch.setattr(provisioning_requests, "PORTION", 2)

    async def life(fixture: SchedulerFixture) -> None:
        found, server = requests_of(fixture)
        sign, signed, most = found._sign, list[int](), list[int]()

        def counted(pod: Pod) -> bytes:
            signed.append(1)
            return sign(pod)

        async def looks() -> None:
            while True:
                most.append(len(signed))
                signed.clear()
                await asyncio.sleep(0)

        found._sign = counted
        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(*gang("llama", 9, cpu=2))
        await fixture.work()
        assert not signed
        looking = asyncio.ensure_future(looks())
        await after(fixture, found, DELAY)
        looking.cancel()
        assert server.names(REQUESTS)
        assert 0 < max(most) <= 2

    scheduler_test(life, CONFIG)
