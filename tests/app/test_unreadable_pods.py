"""What the scheduler does not read stops nothing, and what it cannot read closes no node but the pod's own."""

import json
from typing import Any

import pytest

from kubenexus.api.codec import decode_list
from kubenexus.app.election.lease import Lease
from kubenexus.app.watch.informers import InformerHandler, watch_target
from kubenexus.client import kinds
from kubenexus.client.watch_events import decode_watch_lines
from kubenexus.explain.cluster_dump import read_dump
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

DEEP = b'{"f:\xff":' * 1500 + b"{}" + b"}" * 1500
GROUPS = kinds.COSCHEDULING_POD_GROUPS
BAD_GROUP = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": "many"}}
GOOD_GROUP = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 1}}
MISSING = "waiting for PodGroup.scheduling.x-k8s.io default/g to appear"
UNREAD = "PodGroup.scheduling.x-k8s.io default/g: spec.minMember: Expected `int | null`, got `str`"


def dumped(thing: Any) -> bytes:
    return json.dumps(thing).encode().replace(b'"DEEP"', DEEP)


def deep(name: str, node: str = "", **spec: Any) -> dict[str, Any]:
    """A pod as any tenant may make it."""
    annotations, requests = {"nodeName": "n1", "phase": "Failed"}, {"resources": {"requests": {"cpu": "1"}}}
    meta = {"name": name, "namespace": "mallory", "uid": name, "annotations": annotations}
    fields = [{"fieldsType": "FieldsV1", "fieldsV1": "DEEP"}]
    spec = {"nodeName": node, "schedulerName": "another", "containers": [requests]} | spec
    return {"metadata": meta | {"managedFields": fields}, "spec": spec}


def hear(fixture: SchedulerFixture, what: str, *things: Any, resource: kinds.ApiResource = kinds.PODS) -> None:
    kind, informer = watch_target(resource).type, InformerHandler(fixture.handlers, resource, fixture.scheduler.wakeup)
    if what != "LIST":
        lines = [b'{"type":"%s","object":%s}' % (what.encode(), dumped(thing)) for thing in things]
        informer.events(decode_watch_lines(lines, kind).changes)
        return
    page = decode_list(b'{"kind":"List","items":[%s]}' % b",".join(map(dumped, things)), kind)
    informer.list_started()
    informer.list_page(page.items, page.unreadable)
    informer.list_finished()


@pytest.mark.parametrize("what", ["ADDED", "LIST"])
def test_a_pod_with_deep_fields_counts_as_any_other(what: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=2), a_node("n2", cpu=8))
        hear(fixture, what, deep("runs", "n1"), deep("waits"))
        assert fixture.handlers.ledger.blocked_nodes == {}
        assert fixture.handlers.ledger.pods["mallory/runs"].node == "n1"
        assert not fixture.handlers.bad_objects.logged
        fixture.pods(a_pod("large", cpu=2), a_pod("small", cpu=1))
        await fixture.work()
        assert fixture.where()["large"] == "n2", "one of the two cores of n1 is taken"

    scheduler_test(life)


@pytest.mark.parametrize(
    ("pod", "fences"),
    [
        pytest.param(deep("a", "n1", priority="x"), {"n1": ["mallory/a"]}, id="on a node"),
        pytest.param(deep("a", priority="x"), {}, id="with a node's name in an annotation"),
        pytest.param(deep("a", "n1", priority="x") | {"status": {"phase": "Failed"}}, {}, id="that has ended"),
        pytest.param(deep("", "n1", priority="x"), {}, id="without a name"),
    ],
)
@pytest.mark.parametrize("what", ["ADDED", "LIST"])
def test_a_pod_that_cannot_be_read_closes_the_node_it_runs_on_and_no_other(
    what: str, pod: dict[str, Any], fences: dict[str, list[str]]
) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1"), a_node("n2"))
        hear(fixture, what, pod)
        assert fixture.handlers.ledger.blocked_nodes == fences

    scheduler_test(life)
    items = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}},
        {"kind": "Pod", "apiVersion": "v1"} | pod,
    ]
    found = read_dump(b'{"kind":"List","items":[%s]}' % b",".join(map(dumped, items)), "a file")
    assert found.ledger.blocked_nodes == fences
    assert len(found.problems) == 1


def test_a_lease_with_deep_fields_is_a_lease() -> None:
    meta = {"name": "kubenexus", "labels": {"a": "b"}, "managedFields": [{"fieldsV1": "DEEP"}]}
    lease = Lease.read(dumped({"metadata": meta, "spec": {"holderIdentity": "me"}}))
    assert (lease.spec.holder, lease.raw["metadata"]["labels"]) == ("me", {"a": "b"})


def test_a_pod_of_a_group_that_cannot_be_read_says_what_is_wrong_with_it() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        def why() -> str:
            fixture.handlers.assembler.build_changed()
            verdict = fixture.queue.gate_verdict(fixture.handlers.assembler.waiting.job_key("default/p"))
            return "" if verdict is None else verdict.reasons[0]

        fixture.nodes(a_node("n1"))
        fixture.pods(a_pod("p", labels={"scheduling.x-k8s.io/pod-group": "g"}))
        assert why() == MISSING
        hear(fixture, "ADDED", BAD_GROUP, resource=GROUPS)
        assert why() == UNREAD
        hear(fixture, "DELETED", BAD_GROUP, resource=GROUPS)
        assert why() == MISSING
        hear(fixture, "LIST", BAD_GROUP, resource=GROUPS)
        assert why() == UNREAD
        hear(fixture, "LIST", resource=GROUPS)
        assert why() == MISSING, "it was deleted while no watch told of it"
        hear(fixture, "ADDED", BAD_GROUP, resource=GROUPS)
        hear(fixture, "MODIFIED", GOOD_GROUP, resource=GROUPS)
        await fixture.work()
        assert fixture.where() == {"p": "n1"}

    scheduler_test(life)
