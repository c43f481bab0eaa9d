"""One object that thousands of gangs name: its update costs a portion of work in each turn, and no job is decided by
what the object was before."""

import pytest

from kubenexus.api.core import Pod, WorkloadRef
from kubenexus.api.gangs.declaration import POD_GROUP, WORKLOAD
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import GangPolicy, SchedulingPolicy, Workload, WorkloadPodGroup, WorkloadSpec
from kubenexus.queue.gangs.changed_gangs import LEAST_WEIGHT, MARKED
from kubenexus.queue.gangs.job_assembler import PER_GANG, PORTION
from kubenexus.queue.gangs.rebuild_pacing import CREDIT, PER_SECOND
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_pod
from tests.api.gangs.builders import pod_group
from tests.queue.assembler_fixture import AssemblerFixture, turned
from tests.queue.test_job_assembler import in_group

GANGS = 2000
A_TURN = PORTION // (PER_GANG + 2) + 1  # gangs of two


def replica(gang: int, member: int, namespace: str = "default") -> Pod:
    ref = WorkloadRef(name="w", pod_group="g", pod_group_replica_key=f"k{gang}")
    return a_pod(f"m{gang}-{member}", namespace=namespace, workload_ref=ref)


def workload(minimum: int, namespace: str = "default", **meta: str) -> Workload:
    group = WorkloadPodGroup(name="g", policy=SchedulingPolicy(gang=GangPolicy(min_count=minimum)))
    metadata = ObjectMeta(name="w", namespace=namespace, annotations=meta)
    return Workload(metadata=metadata, spec=WorkloadSpec(pod_groups=[group]))


def update(fixture: AssemblerFixture, thing: Workload) -> None:
    fixture.groups.seen(WORKLOAD, thing)
    fixture.assembler.group_changed(WORKLOAD, thing.metadata.key)


def settle(fixture: AssemblerFixture) -> None:
    """As many turns as it takes, with pauses for credit."""
    while (due := fixture.assembler.next_due()) is not None:
        fixture.clock.advance(max(due - fixture.clock.now(), 0.0))
        fixture.assembler.build_changed()


@pytest.fixture
def fixture() -> AssemblerFixture:
    """Thousands of gangs of two that name one Workload, all of them ready."""
    fixture = AssemblerFixture()
    update(fixture, workload(2))
    fixture.waits(*(replica(gang, member) for gang in range(GANGS) for member in range(2)), since=1.0)
    settle(fixture)
    update(fixture, workload(2, first="update"))
    settle(fixture)
    return fixture


def test_an_update_builds_a_portion_of_its_gangs_in_each_turn(fixture: AssemblerFixture) -> None:
    before, turns = fixture.assembler.builds, []
    update(fixture, workload(3))
    while fixture.assembler.builds < before + GANGS:
        at = fixture.assembler.builds
        fixture.assembler.build_changed()
        turns.append(fixture.assembler.builds - at)
        fixture.clock.advance(0.01)
    assert max(turns) <= A_TURN
    settle(fixture)
    assert fixture.assembler.builds == before + GANGS
    assert fixture.queue.pending(QueueState.GATED).jobs == GANGS


def test_updates_without_end_are_recorded_in_constant_time_and_built_by_credit(fixture: AssemblerFixture) -> None:
    before, began, marked = fixture.assembler.builds, fixture.clock.now(), 0
    changed = fixture.assembler.registry.changed
    mark = changed._mark

    def counted(gang: str) -> None:
        nonlocal marked
        marked += 1
        mark(gang)

    changed._mark = counted  # type: ignore[method-assign]
    for number in range(500):
        update(fixture, workload(3 + number % 2))
    assert marked == 0
    for number in range(300):
        update(fixture, workload(3 + number % 2))
        was = marked
        fixture.assembler.build_changed()
        assert marked - was <= MARKED + A_TURN
        fixture.clock.advance(0.1)
    seconds = fixture.clock.now() - began
    assert fixture.assembler.builds - before <= (CREDIT + seconds * PER_SECOND) / LEAST_WEIGHT


def test_f03_a_gang_that_is_not_built_yet_is_not_decided_by_the_old_minimum(fixture: AssemblerFixture) -> None:
    update(fixture, workload(3))
    assert fixture.queue.pending(QueueState.ACTIVE).jobs == GANGS, "nothing is built yet"
    before = fixture.assembler.builds
    assert fixture.queue.pop(rebuilder=fixture.assembler) is None
    assert 0 < fixture.assembler.builds - before <= A_TURN, "one turn looks at no more of them"
    update(fixture, workload(1))
    fixture.waits(a_pod("web"), since=0.0)
    assert turned(fixture).job.key == "default/web"
    attempts = [attempt for _ in range(4 * GANGS // A_TURN) if (attempt := fixture.pop()) is not None]
    assert attempts
    assert {attempt.job.is_gang for attempt in attempts} == {False}, "each pod by itself, as the Workload has it now"


def test_f03_the_topology_and_the_deletion_of_an_object_count_as_well() -> None:
    fixture = AssemblerFixture(portion=1)
    fixture.group(pod_group("llama", 2))
    fixture.waits(in_group("m0"), in_group("m1"))
    fixture.assembler.build_changed()
    fixture.group(pod_group("llama", 2, "topology.kubernetes.io/rack"))
    job = fixture.queue.job("default/podgroup/llama")
    assert job is not None
    assert job.topology.required == ""
    attempt = fixture.queue.pop(rebuilder=fixture.assembler)
    assert attempt is not None
    assert attempt.job.topology.required == "topology.kubernetes.io/rack"
    fixture.fixture.refuse("Room", attempt=attempt)
    fixture.groups.gone(POD_GROUP, "default/llama")
    fixture.assembler.group_changed(POD_GROUP, "default/llama")
    fixture.queue.activate("default/podgroup/llama")
    fixture.assembler._left_for_attempts = 1
    assert fixture.queue.pop(rebuilder=fixture.assembler) is None
    assert fixture.queue.state("default/podgroup/llama") is QueueState.GATED


def test_an_update_that_changes_nothing_for_gangs_builds_none(fixture: AssemblerFixture) -> None:
    before = fixture.assembler.builds
    for number in range(100):
        update(fixture, workload(2, number=str(number)))
    assert fixture.assembler.next_due() is None
    fixture.assembler.build_changed()
    assert fixture.assembler.builds == before
    fixture.assembler.kind_changed(WORKLOAD)
    assert fixture.assembler.next_due() is None, "the kind is listable, as before"


def test_namespaces_take_turns(fixture: AssemblerFixture) -> None:
    update(fixture, workload(2, "good"))
    fixture.waits(replica(0, 0, "good"), replica(0, 1, "good"), since=2.0)
    settle(fixture)
    for minimum in range(3, 20):  # all credit is gone
        update(fixture, workload(minimum))
        fixture.assembler.build_changed()
        fixture.assembler.build_changed()
    update(fixture, workload(3, "good"))
    fixture.clock.advance(2 * LEAST_WEIGHT / PER_SECOND)
    fixture.assembler.build_changed()
    assert fixture.queue.state("good/workload/w/g/k0") is QueueState.GATED


def test_members_of_a_trivial_gang_are_decided_without_building_all_of_it() -> None:
    fixture = AssemblerFixture()
    fixture.group(pod_group("llama"))
    fixture.waits(*(in_group(f"m{i:04}") for i in range(2000)))
    settle(fixture)
    before = fixture.assembler.builds
    for _ in range(200):
        attempt = fixture.queue.pop(rebuilder=fixture.assembler)
        assert attempt is not None
        fixture.land(attempt, fixture.assume(attempt))
        fixture.bound(attempt.job.pods[0])
    assert fixture.assembler.builds - before <= CREDIT // 2000 + 2 * 200 // (2000 // 32)
    fixture.bound(in_group("m1999"))  # by another scheduler, and the gang is not built since
    left = {fixture.queue.job(f"default/m{i:04}") is not None for i in range(200, 1999)}
    assert left == {True}
    seen = set()
    while (next_attempt := fixture.queue.pop(rebuilder=fixture.assembler)) is not None:
        seen.add(next_attempt.job.key)
    assert "default/m1999" not in seen
    assert len(seen) == 1799


def test_a_pod_that_was_tried_alone_is_not_when_its_group_became_a_gang_meanwhile() -> None:
    fixture = AssemblerFixture()
    fixture.group(pod_group("llama"))
    fixture.waits(in_group("m0"), in_group("m1"))
    alone = turned(fixture)
    seated = fixture.assume(alone)
    fixture.group(pod_group("llama", 2))
    settle(fixture)
    fixture.land(alone, seated, failed=(seated[0].metadata.name,))
    fixture.clock.advance(10.0)
    attempt = turned(fixture)
    assert (attempt.job.minimum, len(attempt.job.pods)) == (2, 2)
    assert fixture.pop() is None
