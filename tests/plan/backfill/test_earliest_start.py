"""The sweep over expected ends, beside a reference in plain Python."""

import math

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.base.timestamps import format_time
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

NOW = 1_767_225_600.0
KEY = "scheduling.kubenexus.io/max-runtime"
PLANNER = Planner(profile_plugins())

# Nodes by (cpu, pods); pods on them by (node, cpu, seconds until they end, or None).
CLUSTERS = st.tuples(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 6)), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 4), st.none() | st.integers(10, 60).map(lambda n: n * 10)),
        max_size=10,
    ),
    st.integers(1, 6),
    st.integers(1, 5),
)


def running(i: int, node: int, cpu: int, seconds: int | None) -> Pod:
    notes = {} if seconds is None else {KEY: f"{seconds}s"}
    status = {"phase": "Running", "start_time": format_time(NOW)}
    return a_pod(f"p{i}-of", cpu=cpu, node=f"n{node}", annotations=notes, status=status, restart_policy="Never")


def earliest(
    nodes: list[tuple[int, int]], pods: list[tuple[int, int, int | None]], size: int, cpu: int
) -> float | None:
    """The reference: look at the cluster after each end."""
    for at in sorted({0, *(end for _, _, end in pods if end is not None)}):
        total = 0
        for index, (cpus, places) in enumerate(nodes):
            there = [used for node, used, end in pods if node == index and (end is None or end > at)]
            total += max(min((cpus - sum(there)) // cpu, places - len(there)), 0)
        if total >= size:
            return at or None
    return None


def built(
    nodes: list[tuple[int, int]], pods: list[tuple[int, int, int | None]], size: int, cpu: int
) -> tuple[Reservation | None, Ledger]:
    ledger = Ledger()
    for i, (cpus, places) in enumerate(nodes):
        ledger.upsert_node(a_node(f"n{i}", cpu=cpus, pods=places))
    for i, (node, used, seconds) in enumerate(pods):
        ledger.upsert_pod(running(i, node, used, seconds))
    members = tuple(a_pod(f"m{i}", cpu=cpu) for i in range(size))
    job = Job("default/gang/g" if size > 1 else members[0].key, members, minimum=size)
    return PLANNER.reserve_at_start(job, ledger.snapshot(), NOW, 86_400.0), ledger


@settings(max_examples=80, deadline=None)
@given(CLUSTERS)
def test_the_sweep_finds_the_first_time_at_which_the_job_fits(
    cluster: tuple[list[tuple[int, int]], list[tuple[int, int, int | None]], int, int],
) -> None:
    nodes, pods, size, cpu = cluster
    pods = [each for each in pods if each[0] < len(nodes)]
    found, ledger = built(nodes, pods, size, cpu)
    expected = earliest(nodes, pods, size, cpu)
    assert (None if found is None else found.starts_at - NOW) == expected
    if found is None:
        return
    assert sum(sum(each.values()) for each in found.reserved_nodes) == size
    for name, left in found.spare.items():
        # What is spare is what the node has then, without the members.
        index = int(name[1:])
        there = [each for each in pods if each[0] == index and (each[2] is None or each[2] > (expected or 0))]
        number = found.reserved_nodes[0][name]
        assert left["cpu"] == 1000 * (nodes[index][0] - sum(each[1] for each in there) - number * cpu)
        assert left["pods"] == nodes[index][1] - len(there) - number
        assert min(left.values()) >= 0
    assert ledger.nodes.pods.expected_ends.known


def test_terminating_pods_end_at_once_and_ends_too_far_away_do_not_count() -> None:
    ledger = Ledger()
    ledger.upsert_node(a_node("n0", cpu=4))
    ledger.upsert_pod(running(0, 0, 4, 600))
    head = a_pod("head", cpu=3)
    job = Job(head.key, (head,))
    assert PLANNER.reserve_at_start(job, ledger.snapshot(), NOW, 599.0) is None
    assert PLANNER.reserve_at_start(job, ledger.snapshot(), NOW, 600.0).starts_at == NOW + 600  # type: ignore[union-attr]
    pod = running(0, 0, 4, 600)
    leaving = msgspec.structs.replace(pod.metadata, deletion_timestamp=format_time(NOW))
    ledger.upsert_pod(msgspec.structs.replace(pod, metadata=leaving))
    assert PLANNER.reserve_at_start(job, ledger.snapshot(), NOW, 600.0).starts_at == NOW  # type: ignore[union-attr]


def test_a_node_that_is_closed_for_another_reason_is_not_waited_for() -> None:
    ledger = Ledger()
    ledger.upsert_node(a_node("n0", cpu=4, taints=["dedicated=other:NoSchedule"]))
    ledger.upsert_pod(running(0, 0, 4, 600))
    head = a_pod("head", cpu=3)
    assert PLANNER.reserve_at_start(Job(head.key, (head,)), ledger.snapshot(), NOW, 3600.0) is None


def test_a_reservation_by_time_says_so_and_names_the_job_to_its_namespace_alone() -> None:
    found, _ = built([(4, 6)], [(0, 4, 600)], 1, 3)
    assert found is not None
    assert math.isfinite(found.starts_at)
    assert "m0" not in found.sentence()
    assert "pod default/m0" in found.detail()
