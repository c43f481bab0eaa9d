"""What the scheduler does not read stops nothing, and what it cannot read closes no node but the pod's own."""

import json
from typing import Any

import pytest

from kubenexus.api.codec import decode_list
from kubenexus.app.hearing import Hearing, topic
from kubenexus.app.lease import Lease
from kubenexus.client import kinds
from kubenexus.client.changes import read_batch
from kubenexus.observe.dump import read_dump
from kubenexus.testing.builders import a_node, a_pod
from tests.app.town import Town, in_town

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


def hear(town: Town, what: str, *things: Any, resource: kinds.Resource = kinds.PODS) -> None:
    kind, hearing = topic(resource).type, Hearing(town.feed, resource)
    if what != "LIST":
        lines = [b'{"type":"%s","object":%s}' % (what.encode(), dumped(thing)) for thing in things]
        hearing.changed(read_batch(lines, kind).changes)
        return
    page = decode_list(b'{"kind":"List","items":[%s]}' % b",".join(map(dumped, things)), kind)
    hearing.begin()
    hearing.listed(page.items, page.unreadable)
    hearing.end()


@pytest.mark.parametrize("what", ["ADDED", "LIST"])
def test_a_pod_with_deep_fields_counts_as_any_other(what: str) -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n1", cpu=2), a_node("n2", cpu=8))
        hear(town, what, deep("runs", "n1"), deep("waits"))
        assert town.feed.ledger.fences == {}
        assert town.feed.ledger.pods["mallory/runs"].node == "n1"
        assert not town.feed.unusable
        town.pods(a_pod("large", cpu=2), a_pod("small", cpu=1))
        await town.work()
        assert town.where()["large"] == "n2", "one of the two cores of n1 is taken"

    in_town(life)


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
    async def life(town: Town) -> None:
        town.nodes(a_node("n1"), a_node("n2"))
        hear(town, what, pod)
        assert town.feed.ledger.fences == fences

    in_town(life)
    items = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}},
        {"kind": "Pod", "apiVersion": "v1"} | pod,
    ]
    found = read_dump(b'{"kind":"List","items":[%s]}' % b",".join(map(dumped, items)), "a file")
    assert found.ledger.fences == fences
    assert len(found.problems) == 1


def test_a_lease_with_deep_fields_is_a_lease() -> None:
    meta = {"name": "kubenexus", "labels": {"a": "b"}, "managedFields": [{"fieldsV1": "DEEP"}]}
    lease = Lease.read(dumped({"metadata": meta, "spec": {"holderIdentity": "me"}}))
    assert (lease.spec.holder, lease.raw["metadata"]["labels"]) == ("me", {"a": "b"})


def test_a_pod_of_a_group_that_cannot_be_read_says_what_is_wrong_with_it() -> None:
    async def life(town: Town) -> None:
        def why() -> str:
            town.feed.assembly.flush()
            verdict = town.room.gate(town.feed.assembly.job_of("default/p"))
            return "" if verdict is None else verdict.reasons[0]

        town.nodes(a_node("n1"))
        town.pods(a_pod("p", labels={"scheduling.x-k8s.io/pod-group": "g"}))
        assert why() == MISSING
        hear(town, "ADDED", BAD_GROUP, resource=GROUPS)
        assert why() == UNREAD
        hear(town, "DELETED", BAD_GROUP, resource=GROUPS)
        assert why() == MISSING
        hear(town, "LIST", BAD_GROUP, resource=GROUPS)
        assert why() == UNREAD
        hear(town, "LIST", resource=GROUPS)
        assert why() == MISSING, "it was deleted while no watch told of it"
        hear(town, "ADDED", BAD_GROUP, resource=GROUPS)
        hear(town, "MODIFIED", GOOD_GROUP, resource=GROUPS)
        await town.work()
        assert town.where() == {"p": "n1"}

    in_town(life)
