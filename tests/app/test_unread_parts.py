"""A bound pod closes its node only if its requests cannot be read. Any other part that fails, fails alone."""

from typing import Any

import pytest

import kubenexus.state.ledger as ledger_module
import kubenexus.state.pods as pods_module
from kubenexus.queue.object_events import pod_bound
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_unreadable_pods import hear


def mallory(name: str = "odd", **spec: Any) -> dict[str, Any]:
    requests = {"resources": {"requests": {"cpu": "1"}}}
    meta = {"name": name, "namespace": "mallory", "uid": name, "labels": {"app": "odd"}}
    return {"metadata": meta, "spec": {"nodeName": "n1", "containers": [requests]} | spec}


def near(operator: str) -> dict[str, Any]:
    selector = {"matchExpressions": [{"key": "a", "operator": operator}]}
    term = {"topologyKey": "zone", "labelSelector": selector}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def fail(*_: Any, **__: Any) -> Any:
    raise ValueError("a mistake of ours")


def ledger_part(name: str) -> Any:
    return lambda fixture, patch: patch.setattr(pods_module, name, fail)


def fail_on_bound_event(fixture: SchedulerFixture, patch: pytest.MonkeyPatch) -> None:
    tell, bound = fixture.queue.on_event, pod_bound(a_pod("p", node="n1"))

    def on_event(event: Any) -> None:
        if (event.resource, event.action) == (bound.resource, bound.action):
            fail()
        tell(event)

    patch.setattr(fixture.queue, "on_event", on_event)


CONTENT = {
    "a disk whose name is half an IPv6 address": {
        "volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "aws://["}}]
    },
    "a disk whose name is no volume": {"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "aws://x/bad"}}]},
    "a term with an unknown operator": {"affinity": near("Near")},
}
BREAKING = {
    "terms": ledger_part("affinity_terms"),
    "volumes": ledger_part("pod_volumes"),
    "owner": ledger_part("endless"),
    "gang": lambda fixture, patch: patch.setattr(fixture.handlers.assembler, "add_bound", fail),
    "events": fail_on_bound_event,
    "cache": lambda fixture, patch: patch.setattr(fixture.handlers.cache, "stripped_pod", fail),
}


@pytest.mark.parametrize("what", ["ADDED", "LIST"])
@pytest.mark.parametrize("spec", [pytest.param(spec, id=name) for name, spec in CONTENT.items()])
def test_what_a_bound_pod_has_wrong_besides_its_requests_closes_no_node(spec: dict[str, Any], what: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=2))
        hear(fixture, what, mallory(**spec))
        assert fixture.ledger.blocked_nodes == {}
        fixture.pods(a_pod("fits", cpu=1), a_pod("large", cpu=1))
        await fixture.work()
        assert fixture.where() == {"odd": "n1", "fits": "n1"}, "one core is taken, one is left"
        hear(fixture, "DELETED", mallory(**spec))
        assert fixture.ledger.unread_parts == {}

    scheduler_test(life)


@pytest.mark.parametrize("what", ["ADDED", "LIST"])
@pytest.mark.parametrize("breaks", [pytest.param(breaks, id=name) for name, breaks in BREAKING.items()])
def test_each_part_fails_alone_and_is_logged_once(breaks: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=2))
        with monkeypatch.context() as patch:
            breaks(fixture, patch)
            hear(fixture, what, mallory())
            hear(fixture, what, mallory())
        assert fixture.ledger.blocked_nodes == {}
        assert fixture.ledger.pods["mallory/odd"].footprint.amounts == (("cpu", 1000),)
        assert fixture.handlers.bad_objects.logged == {"Pod": 1}
        hear(fixture, "LIST")
        assert not fixture.ledger.pods, "a list without the pod removes it"
        assert not fixture.handlers.pod_keys()

    scheduler_test(life)


def test_an_error_in_reading_requests_closes_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=2))
        hear(fixture, "ADDED", mallory())
        with monkeypatch.context() as patch:
            patch.setattr(ledger_module, "footprint_of", fail)
            hear(fixture, "MODIFIED", mallory(priority=5))
        assert fixture.ledger.blocked_nodes == {"n1": ["mallory/odd"]}
        hear(fixture, "MODIFIED", mallory(priority=6))
        assert fixture.ledger.blocked_nodes == {}

    scheduler_test(life)


def test_a_gang_that_cannot_forget_a_deleted_pod_keeps_no_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=2))
        hear(fixture, "ADDED", mallory())
        monkeypatch.setattr(fixture.handlers.assembler, "remove", fail)
        hear(fixture, "DELETED", mallory())
        assert not fixture.ledger.pods

    scheduler_test(life)
