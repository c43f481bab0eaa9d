"""One bad object of any kind, in a list or in a watch, is set aside and counted; the others arrive."""

import json
from typing import Any

import pytest

from kubenexus.api.codec import decode_list
from kubenexus.app.watch.informers import WATCHED_KINDS, InformerHandler
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.client.watch_events import ADDED, DELETED, WatchEvent, decode_watch_lines
from kubenexus.state.object_kinds import KINDS, kind_name
from kubenexus.testing.builders import a_node
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

STRANGE: dict[str, dict[str, Any]] = {
    "metadata that is a number": {"metadata": 5},
    "no name": {"metadata": {"namespace": "default"}},
    "labels that are a list": {"metadata": {"name": "bad", "namespace": "default", "labels": [1]}},
    "nothing at all": {},
}
# What only some kinds have, and what the ledger refuses though it can be decoded.
DEEPER: dict[ApiResource, dict[str, Any]] = {
    kinds.NODES: {"status": {"allocatable": {"cpu": "12 apples"}}},
    kinds.PODS: {"spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": "12 apples"}}}]}},
    kinds.NAMESPACES: {"metadata": {"name": "bad", "labels": {"a": 5}}},
    kinds.QUEUES: {"metadata": {"name": "bad"}, "spec": {"weight": "x"}},
    kinds.CLUSTER_QUEUES: {"metadata": {"name": "bad", "labels": {"a": 5}}},
    kinds.LOCAL_QUEUES: {"spec": {"clusterQueue": 5}},
    kinds.KUEUE_WORKLOADS: {"spec": {"podSets": "all"}},
    kinds.REPLICA_SETS: {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}},
    kinds.STATEFUL_SETS: {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}},
    kinds.SERVICES: {"spec": {"selector": "all"}},
    kinds.REPLICATION_CONTROLLERS: {"spec": {"selector": 5}},
    kinds.PERSISTENT_VOLUMES: {"spec": {"capacity": {"storage": "12 apples"}, "nodeAffinity": "here"}},
    kinds.PERSISTENT_VOLUME_CLAIMS: {"spec": {"accessModes": "all"}},
    kinds.STORAGE_CLASSES: {"allowedTopologies": "all"},
    kinds.CSI_NODES: {"spec": {"drivers": "all"}},
    kinds.CSI_DRIVERS: {"spec": {"storageCapacity": "perhaps"}},
    kinds.CSI_STORAGE_CAPACITIES: {"nodeTopology": "all"},
    kinds.VOLUME_ATTACHMENTS: {"spec": {"nodeName": 5}},
    kinds.DEVICE_CLASSES: {"spec": {"extendedResourceName": 5}},
    kinds.DEVICE_TAINT_RULES: {"spec": {"taint": "bad"}},
    kinds.RESOURCE_CLAIMS: {"spec": {"devices": "all"}},
    kinds.RESOURCE_SLICES: {"spec": {"driver": "gpu.nvidia.com", "nodeName": "n", "devices": [{"attributes": 5}]}},
    kinds.NODE_RESOURCE_TOPOLOGIES: {"zones": "all"},
    kinds.POD_DISRUPTION_BUDGETS: {"metadata": {"name": "bad", "annotations": 5}},
    kinds.PRIORITY_CLASSES: {"metadata": {"name": "bad", "annotations": 5}},
    kinds.RESOURCE_RESERVATIONS: {"spec": {"reservations": "all"}},
    kinds.POD_GROUPS: {"spec": {"schedulingPolicy": "gang"}},
    kinds.WORKLOADS: {"spec": {"podGroups": "all"}},
    kinds.COSCHEDULING_POD_GROUPS: {"spec": {"minMember": "many"}},
    kinds.VOLCANO_POD_GROUPS: {"spec": {"minMember": "many"}},
}
CASES = [
    pytest.param(resource, bad, id=f"{resource}: {what}")
    for resource in WATCHED_KINDS
    for what, bad in (STRANGE | {"a field of its own": DEEPER[resource]}).items()
]


def good(name: str, resource: ApiResource) -> dict[str, Any]:
    namespace = {"namespace": "default"} if resource.namespaced else {}
    return {"metadata": {"name": name, "uid": f"u-{name}", **namespace}}


def bad_one(bad: dict[str, Any], resource: ApiResource) -> dict[str, Any]:
    return {**({} if "metadata" in bad or not bad else good("bad", resource)), **bad}


def keys(informer: InformerHandler) -> set[str]:
    return {key.rpartition("/")[2] for key in informer._keys()}


@pytest.mark.parametrize(("resource", "bad"), CASES)
def test_a_bad_object_keeps_no_other_out(resource: ApiResource, bad: dict[str, Any]) -> None:
    kind = KINDS[kind_name(resource.kind, resource.group)].type

    async def life(fixture: SchedulerFixture) -> None:
        informer = InformerHandler(fixture.handlers, resource, fixture.scheduler.wakeup)
        items = [good("first", resource), bad_one(bad, resource), good("second", resource)]
        raw = {"kind": f"{resource.kind}List", "metadata": {"resourceVersion": "1"}, "items": items}
        page = decode_list(json.dumps(raw).encode(), kind)
        informer.list_started()
        informer.list_page(page.items, page.unreadable)
        informer.list_finished()
        assert {"first", "second"} <= keys(informer)
        assert sum(fixture.handlers.bad_objects.logged.values()) == 1
        lines = [
            json.dumps({"type": "ADDED", "object": each}).encode()
            for each in (bad_one(bad, resource), good("third", resource))
        ]
        informer.events(decode_watch_lines(lines, kind).changes)
        assert {"first", "second", "third"} <= keys(informer)

    scheduler_test(life)


@pytest.mark.parametrize("resource", [pytest.param(each, id=str(each)) for each in WATCHED_KINDS])
@pytest.mark.parametrize("broken", ["_seen", "_gone", "both, and setting aside"])
def test_a_handler_that_fails_does_not_end_the_watch(resource: ApiResource, broken: str) -> None:
    """Whatever is wrong in what follows: the task of a watch ends with an exception, and the process with the task."""
    kind = KINDS[kind_name(resource.kind, resource.group)].type

    def fail(*_: Any) -> None:
        raise RuntimeError("a mistake of ours")

    async def life(fixture: SchedulerFixture) -> None:
        informer = InformerHandler(fixture.handlers, resource, fixture.scheduler.wakeup)
        things = decode_list(
            json.dumps({"kind": "List", "items": [good("a", resource), good("b", resource)]}).encode(), kind
        ).items
        informer.events([WatchEvent(ADDED, each) for each in things])
        for name in ("_seen", "_gone") if broken.startswith("both") else (broken,):
            setattr(informer, name, fail)
        if broken.startswith("both"):
            for name in ("block_unreadable_pod", "remove_pod", "complain"):
                setattr(fixture.handlers, name, fail)
        informer.events([WatchEvent(ADDED, things[0]), WatchEvent(DELETED, things[1])])
        informer.list_started()
        informer.list_page(things, ())
        informer.list_finished()

    scheduler_test(life)


def test_a_gang_that_cannot_be_formed_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        assembler = fixture.handlers.assembler
        form = assembler._form

        def broken(key: str) -> None:
            if key.endswith("/odd"):
                raise RuntimeError("a mistake of ours")
            form(key)

        monkeypatch.setattr(assembler, "_form", broken)
        fixture.nodes(a_node("n"))
        fixture.pods(*(a_member(f"{gang}-{i}", gang=gang, least=2) for gang in ("odd", "even") for i in range(2)))
        await fixture.work()
        assert set(fixture.where()) == {"even-0", "even-1"}

    scheduler_test(life)
