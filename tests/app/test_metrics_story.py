"""Every metric that is declared is written by somebody: a day in town, after which none is untouched."""

import asyncio
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import SchedulingGroup
from kubenexus.app.report import gauge_collector
from kubenexus.app.report.gauge_collector import GaugeCollector
from kubenexus.client import kinds
from kubenexus.observe.recorder import RecorderLimits
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member, pod_group
from tests.api.numa.builders import a_numa_pod, an_nrt, guaranteed
from tests.app.reservation_fixture import a_reservation
from tests.app.scheduler_fixture import SchedulerFixture, in_real_town, scheduler_test
from tests.app.test_stale_gang_evictor import bound
from tests.bind.server import BUSY
from tests.state.queues.queue_objects import a_queue

# Written in other tests: each needs a scheduler with settings or a queue of its own.
ELSEWHERE = {
    "kubenexus_backfilled_jobs_total": "tests/app/test_backfill.py",
    "kubenexus_queue_past_share": "tests/app/test_queues.py",
    "kubenexus_queue_reclaimed_pods_total": "tests/app/test_reclaim.py",
}


class Elected:
    """Leads for good."""

    class terms:  # noqa: N801 - as the election has it
        name = "kubenexus-scheduler"

    def may_write(self) -> bool:
        return True


class Day:
    """What happens, and what was seen of it on `/metrics`."""

    def __init__(self, fixture: SchedulerFixture) -> None:
        self.fixture, self.metrics = fixture, fixture.scheduler.metrics
        self.gauges = GaugeCollector(fixture.scheduler, Elected(), fixture.clock)  # type: ignore[arg-type]
        self.seen: dict[tuple[str, ...], float] = {}

    async def look(self) -> None:
        """Keeps the largest value of each sample."""
        await self.metrics.text()
        for family in self.metrics.collect():
            for sample in family.samples:
                key = (sample.name, *(f"{k}={v}" for k, v in sorted(sample.labels.items()) if k != "le"))
                self.seen[key] = max(self.seen.get(key, 0.0), sample.value)

    def untouched(self) -> list[str]:
        """Families without a sample, and those without labels that are still at zero."""
        found = []
        for family in self.metrics._families:
            name = family.row.name
            names = (name,) if family.kind != "histogram" else (f"{name}_count",)
            values = [value for key, value in self.seen.items() if key[0] in names]
            if not values or not any(values):
                found.append(name)
        return found

    def total(self, name: str, *labels: str) -> float:
        """The sum over all samples that have these labels among others."""
        return sum(value for (of, *given), value in self.seen.items() if of == name and {*labels} <= {*given})

    def value(self, name: str, *labels: str) -> float:
        return self.seen[name, *labels]


async def gangs(day: Day) -> None:
    """One starts, one does not fit, one is half there and stays so, and one waits for its members."""
    fixture = day.fixture
    fixture.pods(*(a_member(f"good-{i}", "good", 2, cpu=1) for i in range(2)))
    named = SchedulingGroup(pod_group_name="large")
    group = pod_group("large", 9)
    fixture.things(msgspec.structs.replace(group, metadata=msgspec.structs.replace(group.metadata, uid="large")))
    fixture.pods(*(a_pod(f"large-{i}", cpu=1, scheduling_group=named) for i in range(9)))
    fixture.pods(bound("half-0", "n"), bound("half-1", "n"))
    fixture.pods(a_member("alone", "lonely", 2))
    await fixture.work()
    await fixture.notes()
    await day.look()
    fixture.clock.advance(400)
    await fixture.scheduler.stale_gangs.step()


async def flushed(day: Day) -> None:
    """The node has grown, and nobody was told."""
    fixture = day.fixture
    fixture.pods(a_pod("patient", cpu=12))
    await fixture.work()
    await day.look()
    for i in range(9):
        fixture.delete(f"default/large-{i}")
    fixture.ledger.upsert_node(a_node("n", cpu=20))
    fixture.clock.advance(400)
    await fixture.work()
    assert "patient" in fixture.where()


async def in_flight(day: Day) -> None:
    """Something happens while a bind is on its way."""
    fixture = day.fixture
    fixture.server.held = asyncio.Event()
    fixture.pods(a_pod("flying", cpu="10m"))
    fixture.scheduler.loop.run_burst()
    fixture.nodes(a_node("m", cpu=1))
    await day.look()
    fixture.server.held.set()
    await fixture.work()
    fixture.server.held = None


async def reserved(day: Day) -> None:
    """A gang waits for room, and keeps what there is."""
    for i in range(2):
        day.fixture.pods(a_member(f"keeps-{i}", "keeps", 2, cpu=8, scheduler_name="packing"))
    await day.fixture.work()


async def preempted(day: Day) -> None:
    """A pod has to go for a more important one."""
    fixture = day.fixture
    fixture.nodes(a_node("p", cpu=2, labels={"only": "p"}))
    fixture.pods(a_pod("low", cpu=2, node="p"), a_pod("urgent", cpu=2, priority=9, selects={"only": "p"}))
    await fixture.work()
    assert len(fixture.ledger.preemptions) == 1
    fixture.delete("default/low")
    await fixture.work()
    assert fixture.where()["urgent"] == "p"


async def miscounted(day: Day) -> None:
    """A node seems to offer less than it does."""
    day.fixture.ledger.nodes.resources.alloc[0, 0] -= 1
    day.fixture.scheduler.ledger_auditor.step()


async def broken(day: Day) -> None:
    """An object cannot be used, and a plugin failed."""
    day.fixture.handlers.bad_objects.log("Node n", "makes no sense")
    day.fixture.scheduler.planners["packing"].class_cache.work.failures["Foreign"] += 1


async def devices(day: Day) -> None:
    """Two GPUs leave the island of eight alone; seven and one fill it; sixteen do not fit."""
    await day.look()
    fixture, model = day.fixture, {"gpu.kubenexus.io/model": "H100-SXM5-80GB"}
    fixture.nodes(a_node("g2", cpu=0, gpu=2, labels=model), a_node("g8", cpu=0, gpu=8, labels=model))
    wanted = {"scheduling.kubenexus.io/vram-request": "40Gi"}
    for name, gpus in (("two", 2), ("seven", 7), ("one", 1), ("sixteen", 16)):
        fixture.pods(a_pod(name, gpu=gpus, scheduler_name="packing", annotations=wanted if gpus == 2 else {}))
        await fixture.work()
    assert {name: fixture.where().get(name) for name in ("two", "seven", "one")} == {
        "two": "g2",
        "seven": "g8",
        "one": "g8",
    }


async def numa(day: Day) -> None:
    """A kubelet with NUMA nodes gets a pod, and refuses it."""
    fixture = day.fixture
    fixture.nodes(a_node("numa", cpu=16, labels={"only": "numa"}))
    fixture.ledger.upsert_node_topology(an_nrt([{"cpu": (8, 8, 8)}] * 2, name="numa"))
    wanted = a_numa_pod(guaranteed("main", "4"), name="pinned", scheduler_name="packing", selects={"only": "numa"})
    fixture.pods(wanted)
    await fixture.work()
    assert fixture.where()["pinned"] == "numa"
    refused = msgspec.structs.replace(wanted, spec=msgspec.structs.replace(wanted.spec, node_name="numa"))
    fixture.scheduler.bind_verifier._refused(refused, "TopologyAffinityError")
    zone = {"cpu": (16, 16, 16), "memory": (1 << 35, 1 << 35, 1 << 35)}
    for name in ("wide", "pack"):
        fixture.nodes(a_node(name, cpu=32, memory="64Gi", labels={"only": name}, taints=["numa:NoSchedule"]))
        fixture.ledger.upsert_node_topology(an_nrt([zone, zone], "restricted", name=name))
    group = {"pod-group.scheduling.kubenexus.io/name": "n", "pod-group.scheduling.kubenexus.io/min-available": "2"}
    told: dict[str, Any] = {"scheduler_name": "packing", "tolerates": ["numa:NoSchedule"]}
    fixture.pods(a_numa_pod(guaranteed("main", "20", "40Gi"), name="both", selects={"only": "wide"}, **told))
    for name in ("m0", "m1"):
        fixture.pods(a_numa_pod(guaranteed("main", "2"), name=name, labels=group, selects={"only": "pack"}, **told))
    await fixture.work()
    assert [fixture.where().get(name) for name in ("both", "m0", "m1")] == ["wide", "pack", "pack"]


async def tenants(day: Day) -> None:
    """A tenant without a tier holds a premium GPU of a node that has a price."""
    fixture = day.fixture
    labels = {"gpu.kubenexus.io/model": "H100", "hardware.kubenexus.io/cost-hour": "3"}
    fixture.nodes(a_node("paid", cpu=0, gpu=1, labels=labels))
    await fixture.work()
    fixture.scheduler.tenant_usage.start()
    await day.look()
    fixture.handlers.on_pod_update(a_pod("paying", gpu=1, node="paid"))
    fixture.clock.advance(10)


async def process(day: Day) -> None:
    """What the process knows of itself."""
    fixture = day.fixture
    (watch,) = [each for each in fixture.scheduler.watches.reflectors if each.resource == kinds.PODS]
    watch.synced, watch.last_event_at = True, fixture.clock.now() - 5
    fixture.scheduler.loop.activity.slow_jobs.decided("default/slow", fixture.clock.now() - 5, fixture.clock.now())
    feeling = asyncio.ensure_future(day.gauges.measure_loop_lag())
    for _ in range(5):
        await asyncio.sleep(0)
    feeling.cancel()


async def queues(day: Day) -> None:
    """A queue whose limit keeps a job waiting, and which borrows."""
    settings = a_queue("ml", guaranteed={"cpu": "1m"}, limit={"cpu": "2m"}, namespaces=["ml"])
    day.fixture.ledger.queues.set_queue(settings)
    day.fixture.pods(*(a_pod(f"small-{i}", namespace="ml", cpu="2m") for i in range(2)))
    await day.fixture.work()
    await day.look()


def test_every_metric_that_is_declared_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        monkeypatch.setattr(gauge_collector, "PERIOD", 0)
        fixture.scheduler.recorder.limits = RecorderLimits(waiting=1)  # so that some events are dropped
        day = Day(fixture)
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(a_pod("fits", cpu=1), a_pod("gated", gates=["wait"]))
        fixture.server.script.append(BUSY)
        await fixture.work()
        for part in (
            gangs,
            flushed,
            in_flight,
            reserved,
            preempted,
            miscounted,
            broken,
            devices,
            numa,
            tenants,
            queues,
            process,
        ):
            await part(day)
        fixture.things(a_reservation(count=1, resources={"cpu": 1000}, at=fixture.clock.now()))
        await fixture.work()
        await day.look()
        assert sorted(day.untouched()) == sorted(ELSEWHERE)
        check(day)

    in_real_town(life)


def check(day: Day) -> None:
    """And what is written is so."""
    profile = "profile=default-scheduler"
    attempts = "scheduler_podgroup_schedule_attempts_total"
    assert day.value(attempts, profile, "result=scheduled") == 1
    assert day.value(attempts, profile, "result=unschedulable") >= 1
    assert day.value("kubenexus_gang_scheduling_decisions_total", "outcome=success") == 2
    assert day.value("kubenexus_gang_scheduling_decisions_total", "outcome=timeout") == 1
    assert day.value("kubenexus_gang_members_short") == 6, "nine want a CPU each, and three are free"
    assert day.value("kubenexus_gang_reservations", "profile=packing") == 1
    assert day.value("kubenexus_gang_reservations", profile) == 0, "it keeps to kube-scheduler's order"
    assert day.value("kubenexus_resource_reservations", "phase=Pending") == 1
    assert day.value("kubenexus_pod_group_size_sum") == 4
    assert day.value("scheduler_queued_entities", "queue=gated", "type=podgroup") == 1
    assert day.value("scheduler_queued_entities", "queue=gated", "type=pod") == 1
    assert day.value("scheduler_unschedulable_pods", "plugin=SchedulingGates", profile) == 1
    assert day.value("scheduler_unschedulable_pods", "plugin=NodeResourcesFit", profile) == 1
    assert day.value("scheduler_unschedulable_pods", "plugin=GangTooLarge", profile) == 9
    assert day.value("scheduler_pod_scheduled_after_flush_total") == 1
    assert day.value("kubenexus_ledger_corrections_total") == 1
    assert day.value("scheduler_preemption_victims_sum") == 1
    assert day.value("scheduler_preemption_attempts_total") >= 1
    assert day.value("scheduler_inflight_events", "event=NodeAdd") == 1
    calls = "scheduler_async_api_call_execution_total"
    assert day.value(calls, "call_type=pod_binding", "result=success") == 14
    assert day.value(calls, "call_type=pod_binding", "result=error") == 1
    assert day.value(calls, "call_type=podgroup_status_patch", "result=success") == 1
    assert day.total("kubenexus_scheduling_decisions_total", "tier=bronze", "result=scheduled") > 3
    assert day.total("kubenexus_scheduling_decisions_total", "tier=bronze", "result=unschedulable") > 0
    assert day.total("kubenexus_gpu_allocation_success_total", "gpu_count=8", "topology_aware=true") == 1
    assert day.total("kubenexus_gpu_allocation_failures_total", "reason=insufficient_gpus") == 1
    assert (
        day.value("kubenexus_island_protection_events_total", "prevented=true", "protection_type=pristine_island") == 1
    )
    assert day.value("kubenexus_perfect_fit_placements_total", "island_size=2", "topology_type=nvswitch") == 1
    assert day.value("kubenexus_island_completions_total", "island_size=8", "topology_quality=100") == 1
    assert day.total("kubenexus_vram_placement_decisions_total", "data_source=model", "outcome=acceptable_fit") == 1
    assert day.total("kubenexus_vram_requested_bytes_sum") == 40 << 30
    check_numa(day)


def check_numa(day: Day) -> None:
    decisions = ("outcome=single_numa", "policy=none", "workload_type=service")
    assert day.total("kubenexus_numa_placement_decisions_total", *decisions) == 1
    assert day.value("kubenexus_numa_false_accepts_total", "cause=since_report", "reason=TopologyAffinityError") == 1
    assert day.value("kubenexus_numa_distance_penalty_total", "distance_level=far") == 1
    assert day.value("kubenexus_numa_gang_affinity_success_total", "gang_policy=packed", "numa_id=0") == 2
    assert day.total("kubenexus_numa_memory_bandwidth_pressure_percent") == 100


def test_a_gang_is_given_up_once_however_often_its_members_are_asked() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(bound("half-0", "n"), bound("half-1", "n"))
        await fixture.work()
        for _ in range(3):
            fixture.clock.advance(400)
            await fixture.scheduler.stale_gangs.step()
        assert fixture.scheduler.metrics.gang_decisions.labels("timeout").value == 1

    scheduler_test(life)


def test_the_cache_is_as_large_as_it_is() -> None:
    """Nodes, pods that have one, and those of them that the watch has yet to confirm."""

    async def life(fixture: SchedulerFixture) -> None:
        gauges, size = GaugeCollector(fixture.scheduler, None, fixture.clock), fixture.scheduler.metrics.cache_size

        def seen() -> list[float]:
            gauges.read()
            return [size.labels(each).value for each in ("nodes", "pods", "assumed_pods")]

        assert seen() == [0, 0, 0]
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(bound("old", "n"), a_pod("new"), a_pod("too-large", cpu=99))
        await fixture.work()
        assert seen() == [1, 2, 1]
        fixture.echo()
        assert seen() == [1, 2, 0]

    scheduler_test(life)
