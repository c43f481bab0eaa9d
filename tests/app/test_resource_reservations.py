"""ResourceReservations in the scheduler: what is kept from whom, until when, and what a tenant cannot do with them."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.workloads import Namespace
from kubenexus.app.reservations import admission
from kubenexus.base.timestamps import format_time
from kubenexus.plan.reserved_capacity import FEW
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.reservation_fixture import START, SYSTEM, a_reservation, for_team, report, said, written
from tests.app.scheduler_fixture import CONFIG, SchedulerFixture, scheduler_test

GPUS = {"nvidia.com/gpu": 8}
ALLOWED = CONFIG.replace(
    "{schedulerName: packing}",
    "{schedulerName: packing, pluginConfig: [{name: ResourceReservation, args: {namespaces: [team-a, team-b]}}]}",
)


def gpu_nodes(fixture: SchedulerFixture, number: int = 4) -> None:
    fixture.nodes(*(a_node(f"n{i}", cpu=64, gpu=8) for i in range(number)))


async def works(fixture: SchedulerFixture, seconds: float = 1.5) -> None:
    await fixture.work()
    fixture.clock.advance(seconds)
    await fixture.work()


def test_capacity_is_kept_from_all_pods_but_the_owners() -> None:
    """RR-1, RR-2, RR-9: enforced, on as many nodes as it has entries, for pods of all namespaces, from memory."""

    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture)
        fixture.things(a_reservation(count=3, resources=GPUS, owner=for_team()))
        await fixture.work()
        assert said(fixture) == ("Active", "Reserved")
        kept = set(report(fixture).nodes.values())
        assert len(kept) == 3
        fixture.pods(*(a_pod(f"other-{i}", gpu=8) for i in range(2)))
        await fixture.work()
        (free,) = {"n0", "n1", "n2", "n3"} - kept
        assert set(fixture.where().values()) == {free}
        fixture.pods(*(a_pod(f"own-{i}", namespace="team-a", gpu=8) for i in range(4)))
        await works(fixture)
        assert {node for name, node in fixture.where().items() if name.startswith("own")} == kept
        assert len(fixture.where()) == 4
        assert said(fixture)[0] == "Claimed"
        assert len(report(fixture).pods) == 3

    scheduler_test(life)


def test_f38_it_ends_when_its_time_is_over_and_wakes_who_waits() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        fixture.things(a_reservation(count=1, resources=GPUS, duration="10m", owner=for_team()))
        await fixture.work()
        fixture.pods(a_pod("other", gpu=1))
        await fixture.work()
        assert fixture.where() == {}
        due = fixture.scheduler.loop.resource_reservations.due
        assert due is not None
        assert due <= START + 600
        fixture.clock.advance(601)
        await works(fixture)
        assert said(fixture) == ("Expired", "Expired")
        assert fixture.where() == {"other": "n0"}
        assert not fixture.ledger.reservations

    scheduler_test(life)


def test_it_begins_at_the_time_that_it_names() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        begins: dict[str, Any] = {"from": format_time(START + 3600)}
        fixture.things(a_reservation(count=1, resources=GPUS, owner=for_team(), **begins))
        await fixture.work()
        assert said(fixture) == ("Pending", "NotStarted")
        assert fixture.scheduler.loop.resource_reservations.due == START + 3600
        fixture.clock.advance(3600)
        await fixture.work()
        assert said(fixture) == ("Active", "Reserved")

    scheduler_test(life)


def test_it_takes_effect_as_a_whole_and_waits_with_a_reason_until_it_fits() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 2)
        fixture.pods(a_pod("runs", gpu=1, node="n0"))
        fixture.things(a_reservation(count=2, resources=GPUS, owner=for_team()))
        await fixture.work()
        assert said(fixture) == ("Pending", "NoRoom")
        assert report(fixture).message
        assert not fixture.ledger.reservations
        fixture.delete("default/runs")
        fixture.clock.advance(2)
        await fixture.work()
        assert said(fixture) == ("Active", "Reserved")

    scheduler_test(life)


@pytest.mark.parametrize("how", ["delete", "change"])
def test_a_deleted_or_changed_object_counts_at_once(how: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 2)
        fixture.things(a_reservation(count=2, resources=GPUS, owner=for_team()))
        await fixture.work()
        fixture.pods(a_pod("other", gpu=8))
        await fixture.work()
        assert fixture.where() == {}
        if how == "delete":
            fixture.handlers.objects.on_delete("ResourceReservation", f"{SYSTEM}/r")
        else:
            fixture.things(a_reservation(count=1, resources=GPUS, owner=for_team(), generation=2))
        await works(fixture)
        assert set(fixture.where()) == {"other"}
        assert len(fixture.ledger.reservations.by_key) == (how == "change")

    scheduler_test(life)


def test_a_lost_node_is_replaced_by_another() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 2)
        fixture.things(a_reservation(count=1, resources=GPUS, owner=for_team()))
        await fixture.work()
        (node,) = report(fixture).nodes.values()
        fixture.handlers.on_node_delete(node)
        await works(fixture)
        await works(fixture)
        (other,) = report(fixture).nodes.values()
        assert {node, other} == {"n0", "n1"}

    scheduler_test(life)


def test_a_pod_of_another_scheduler_on_the_node_moves_the_reservation() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 2)
        fixture.things(a_reservation(count=1, resources=GPUS, owner=for_team()))
        await fixture.work()
        (node,) = report(fixture).nodes.values()
        fixture.pods(a_pod("foreign", gpu=1, node=node, scheduler_name="else"))
        await works(fixture)
        await works(fixture)
        (other,) = report(fixture).nodes.values()
        assert {node, other} == {"n0", "n1"}

    scheduler_test(life)


def test_only_the_entries_of_a_lost_node_move_and_what_pods_use_is_not_reserved_twice() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 2)
        fixture.things(a_reservation(count=2, resources=GPUS, owner=for_team()))
        await fixture.work()
        fixture.pods(a_pod("own", namespace="team-a", gpu=6))
        await works(fixture)
        used = fixture.where()["own"]
        (other,) = {"n0", "n1"} - {used}
        fixture.nodes(a_node("n2", cpu=64, gpu=2))
        fixture.pods(a_pod("foreign", gpu=1, node=used, scheduler_name="else"))
        await works(fixture)
        await works(fixture)
        assert said(fixture)[0] == "Active"
        assert sorted(report(fixture).nodes.values()) == sorted([other, "n2"])
        index = fixture.ledger.nodes.resources.index["nvidia.com/gpu"]
        counted = {
            name: fixture.ledger.nodes.resources.used[index, row] for name, row in fixture.ledger.nodes.row_of.items()
        }
        assert counted == {used: 7, other: 8, "n2": 2}

    scheduler_test(life)


def test_a_reserved_gpu_is_kept_from_parts_of_gpus_too() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "gpu.kubenexus.io/shared": "true"}
        fixture.nodes(a_node("n0", cpu=8, gpu=1, labels=labels))
        fixture.things(a_reservation(count=1, resources={"nvidia.com/gpu": 1}, owner=for_team()))
        await fixture.work()
        half = {"scheduling.kubenexus.io/gpu-fraction": "0.5"}
        fixture.pods(a_pod("other", annotations=half, scheduler_name="packing"))
        await fixture.work()
        assert fixture.where() == {}
        fixture.pods(a_pod("own", namespace="team-a", annotations=half, scheduler_name="packing"))
        await fixture.work()
        assert fixture.where() == {"own": "n0"}

    scheduler_test(life)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"reservations": {"a": {"node": "n1", "cpu": 1}}}, ["n1"], id="on the node that an entry names"),
        pytest.param({"reservations": {"a": {"node": "no", "cpu": 1}}}, [], id="not elsewhere if that node is unknown"),
        pytest.param({"resources": {"cpu": 1}, "nodeSelector": {"pool": "a"}}, ["n2"], id="on nodes with labels"),
        pytest.param({"resources": {"cpu": 60}, "count": 4}, [], id="not on nodes with taints"),
        pytest.param(
            {"resources": {"cpu": 60}, "count": 4, "tolerations": [{"key": "gpu", "operator": "Exists"}]},
            ["n0", "n1", "n2", "n3"],
            id="on nodes with taints that it tolerates",
        ),
    ],
)
def test_where_entries_may_be(spec: dict[str, Any], expected: list[str]) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n0", cpu=64), a_node("n1", cpu=64), a_node("n2", cpu=64, labels={"pool": "a"}))
        fixture.nodes(a_node("n3", cpu=64, taints=["gpu:NoSchedule"]))
        fixture.things(a_reservation(**spec))
        await fixture.work()
        assert sorted(report(fixture).nodes.values()) == expected

    scheduler_test(life)


def test_pods_fill_all_of_many_entries() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        number = FEW + 4
        fixture.nodes(*(a_node(f"n{i}", cpu=2) for i in range(number)))
        fixture.things(a_reservation(count=number, resources={"cpu": 2}, owner=for_team()))
        await fixture.work()
        fixture.pods(*(a_pod(f"half-{i}", namespace="team-a", cpu=1) for i in range(2 * number + 1)))
        fixture.pods(a_pod("other", cpu=1))
        await works(fixture)
        assert len(fixture.where()) == 2 * number
        assert said(fixture)[0] == "Claimed"

    scheduler_test(life)


def test_the_phases_are_counted() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        fixture.things(*(a_reservation(name, count=1, resources=GPUS) for name in "abc"))
        await fixture.work()
        assert dict(fixture.scheduler.resource_reservations.phases()) == {"Pending": 2, "Active": 1, "Claimed": 0}

    scheduler_test(life)


def test_a_gang_claims_its_reservation_and_completes_it() -> None:
    """RR-4: bound members count, running or not."""

    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 3)
        owner = {"namespaces": ["default"]}
        thing = a_reservation(podGroupName="llama", minMember=3, count=3, resources=GPUS, owner=owner)
        fixture.things(thing)
        await fixture.work()
        fixture.pods(a_pod("other", gpu=1))
        fixture.pods(*(a_member(name, "llama", 3, gpu=8) for name in "abc"))
        await fixture.work()
        assert sorted(fixture.where()) == ["a", "b", "c"]
        fixture.echo()
        await works(fixture)
        assert said(fixture) == ("Complete", "Complete")
        assert not fixture.ledger.reservations
        for each in "abc":
            fixture.delete(f"default/{each}")
        for again in (thing, written(thing, fixture)):  # its event comes back, before and after the write
            fixture.things(again)
            await works(fixture)
            assert not fixture.ledger.reservations

    scheduler_test(life)


def test_another_gang_of_the_namespace_is_no_owner() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 2)
        owner = {"namespaces": ["default"]}
        fixture.things(a_reservation(podGroupName="llama", count=2, resources=GPUS, owner=owner))
        await fixture.work()
        fixture.pods(*(a_member(name, "opt", 2, gpu=1) for name in "ab"), a_pod("single", gpu=1))
        await fixture.work()
        assert fixture.where() == {}

    scheduler_test(life)


def test_f29_a_bind_that_fails_gives_the_capacity_back_to_the_reservation() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        fixture.things(a_reservation(count=1, resources=GPUS, owner=for_team()))
        await fixture.work()
        own = a_pod("own", namespace="team-a", gpu=8)
        fixture.pods(own)
        fixture.scheduler.loop.run_burst()
        record = fixture.ledger.reservations.by_key[f"{SYSTEM}/r"]
        assert record.pods == ["team-a/own"]
        fixture.ledger.forget("team-a/own")
        assert record.pods == []
        fixture.pods(a_pod("thief", gpu=1))
        assert "thief" not in fixture.where()
        assert fixture.ledger.nodes.resources.used[fixture.ledger.nodes.resources.index["nvidia.com/gpu"], 0] == 8

    scheduler_test(life)


def test_f29_the_next_process_goes_on_with_the_same_nodes_and_pods() -> None:
    """RR-5: nothing is left behind, and nothing is lost, when the process ends."""
    kept: dict[str, Any] = {}

    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture)
        thing = a_reservation(count=2, resources=GPUS, owner=for_team())
        fixture.things(thing)
        await fixture.work()
        fixture.pods(a_pod("own", namespace="team-a", gpu=8))
        await works(fixture)
        kept["thing"], kept["nodes"] = written(thing, fixture), dict(report(fixture).nodes)
        kept["pod"] = fixture.server.pods["team-a/own"]

    async def afterlife(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture)
        fixture.pods(kept["pod"])
        fixture.things(kept["thing"])
        fixture.pods(*(a_pod(f"other-{i}", gpu=8) for i in range(4)))
        await works(fixture)
        assert dict(report(fixture).nodes) == kept["nodes"]
        assert dict(report(fixture).pods) == {"team-a/own": "Bound"}
        assert len(fixture.where()) == 3  # two others beside the pod, on what is neither kept nor used
        fixture.clock.advance(601)
        await works(fixture)
        assert said(fixture)[0] == "Expired"

    scheduler_test(life)
    scheduler_test(afterlife)


def test_an_expired_one_of_a_gang_that_still_waits_ends() -> None:
    """RR-6."""

    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        owner = {"namespaces": ["default"]}
        fixture.things(a_reservation(podGroupName="llama", count=1, resources=GPUS, owner=owner, duration="1m"))
        fixture.pods(a_member("a", "llama", 2, gpu=8))
        await fixture.work()
        fixture.clock.advance(61)
        await works(fixture)
        assert said(fixture)[0] == "Expired"
        assert not fixture.ledger.reservations

    scheduler_test(life)


# --- tenants -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [{}, {"app.kubernetes.io/managed-by": "kubenexus-scheduler"}], ids=["", "forged"])
def test_by_default_a_reservation_in_a_tenants_own_namespace_keeps_nothing(labels: dict[str, str]) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        fixture.things(a_reservation(namespace="team-a", count=1, resources=GPUS, labels=labels))
        await fixture.work()
        assert said(fixture, "team-a/r") == ("Pending", "NotAllowed")
        assert not fixture.ledger.reservation_objects.by_key["team-a/r"].spec.resources  # nothing of it is kept
        fixture.pods(a_pod("other", gpu=8))
        await fixture.work()
        assert fixture.where() == {"other": "n0"}

    scheduler_test(life)


def test_a_namespace_that_may_reserve_has_a_quarter_of_each_resource() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 8)
        fixture.things(
            a_reservation("one", namespace="team-a", count=2, resources=GPUS),
            a_reservation("two", namespace="team-a", count=1, resources={"nvidia.com/gpu": 1}),
            a_reservation("three", namespace="team-b", count=1, resources=GPUS),
        )
        await fixture.work()
        assert said(fixture, "team-a/one") == ("Active", "Reserved")
        assert said(fixture, "team-a/two") == ("Pending", "TooLarge")
        assert said(fixture, "team-b/three") == ("Active", "Reserved")

    scheduler_test(life, config=ALLOWED)


def test_the_number_of_objects_of_a_namespace_is_limited_and_one_more_is_tried_when_another_ends() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 8)
        most = admission.MAX_IN_NAMESPACE
        fixture.things(
            *(a_reservation(f"r{i}", namespace="team-a", count=1, resources={"cpu": 1}) for i in range(most + 1))
        )
        await fixture.work()
        assert said(fixture, f"team-a/r{most}") == ("Pending", "TooMany")
        fixture.handlers.objects.on_delete("ResourceReservation", "team-a/r0")
        await works(fixture)
        assert said(fixture, f"team-a/r{most}") == ("Active", "Reserved")

    scheduler_test(life, config=ALLOWED)


def test_one_that_lasts_too_long_is_refused() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        fixture.things(a_reservation(count=1, resources=GPUS, duration="25h"))
        await fixture.work()
        assert said(fixture) == ("Pending", "TooLong")

    scheduler_test(life)


def test_one_that_cannot_be_read_says_so_and_the_others_go_on() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        fixture.things(a_reservation("bad", count=0), a_reservation(count=1, resources=GPUS))
        await fixture.work()
        assert said(fixture, f"{SYSTEM}/bad") == ("Pending", "Invalid")
        assert said(fixture) == ("Active", "Reserved")

    scheduler_test(life)


@pytest.mark.parametrize(
    ("spec", "pod", "expected"),
    [
        pytest.param(
            {"owner": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}, {}, True, id="by namespace labels"
        ),
        pytest.param({"owner": {"namespaceSelector": {"matchLabels": {"team": "b"}}}}, {}, False, id="of another team"),
        pytest.param({"tenantTier": "gold"}, {}, True, id="by tier"),
        pytest.param({"tenantTier": "silver"}, {}, False, id="of another tier"),
        pytest.param(
            {"owner": {"namespaces": ["team-a"], "podSelector": {"matchLabels": {"app": "x"}}}},
            {"labels": {"app": "x"}},
            True,
            id="by pod labels",
        ),
        pytest.param(
            {"owner": {"namespaces": ["team-a"], "podSelector": {"matchLabels": {"app": "x"}}}},
            {},
            False,
            id="other pods",
        ),
        pytest.param({"priority": 10}, {"priority": 11}, True, id="a pod of higher priority, where that is allowed"),
        pytest.param({"priority": 10}, {"priority": 10}, False, id="a pod of the same priority"),
        pytest.param({}, {"priority": 1_000_000_000}, False, id="no priority of users by default"),
        pytest.param({}, {"priority": 2_000_000_000}, True, id="pods that are critical for the cluster"),
    ],
)
def test_who_may_use_it(spec: dict[str, Any], pod: dict[str, Any], expected: bool) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        labels = {"team": "a", "tenant.kubenexus.io/tier": "gold"}
        fixture.things(
            Namespace(
                metadata=msgspec.structs.replace(a_reservation().metadata, name="team-a", namespace="", labels=labels)
            )
        )
        fixture.things(a_reservation(count=1, resources=GPUS, **spec))
        await fixture.work()
        assert said(fixture)[0] == "Active"
        fixture.pods(a_pod("p", namespace="team-a", gpu=1, **pod))
        await fixture.work()
        assert ("p" in fixture.where()) is expected

    scheduler_test(life)


def test_a_second_reservation_of_the_same_owner_takes_other_capacity() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 1)
        fixture.things(*(a_reservation(name, count=1, resources=GPUS, owner=for_team(SYSTEM)) for name in "ab"))
        await fixture.work()
        assert sorted(said(fixture, f"{SYSTEM}/{name}")[1] for name in "ab") == ["NoRoom", "Reserved"]

    scheduler_test(life)


def test_the_audit_and_the_digest_agree_with_reserved_capacity() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 2)
        before = digest(fixture.ledger)
        fixture.things(a_reservation(count=2, resources=GPUS, owner=for_team()))
        await fixture.work()
        assert digest(fixture.ledger) == before
        assert [fixture.ledger.audit(a_node(f"n{i}", cpu=64, gpu=8)) for i in range(2)] == [[], []]

    scheduler_test(life)


def test_a_confirmed_bind_alone_completes_a_gang() -> None:
    """Nothing that counts changes then, and the reservation ends all the same."""

    async def life(fixture: SchedulerFixture) -> None:
        gpu_nodes(fixture, 2)
        owner = {"namespaces": ["default"]}
        fixture.things(a_reservation(podGroupName="llama", count=2, resources=GPUS, owner=owner))
        await fixture.work()
        fixture.pods(*(a_member(name, "llama", 2, gpu=8) for name in "ab"))
        await works(fixture)
        assert said(fixture)[0] == "Claimed"
        assert set(report(fixture).pods.values()) == {"Assumed"}
        generation = fixture.ledger.generation
        fixture.echo()
        assert fixture.ledger.generation == generation
        await works(fixture)
        assert said(fixture) == ("Complete", "Complete")

    scheduler_test(life)
