"""What is known by states of NUMA nodes, against the kubelet's judgement about each node."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.numa.admission import admit_to_managers
from kubenexus.api.numa.machine import POLICIES, CpuLayout, Kubelet, Machine, Usage, idle
from kubenexus.api.numa.pod_demand import ContainerDemand, PodDemand
from kubenexus.api.numa.refusal import TOPOLOGY
from kubenexus.api.numa.reported_node import ReportedNode
from kubenexus.plugins.numa.class_rules import ClassRules
from kubenexus.plugins.numa.gang_capacity import members_by_row, surely_admitted
from kubenexus.plugins.numa.judging import judge_one, judge_rows, score_one, score_rows
from kubenexus.plugins.numa.request import NumaRequest, Wanted
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.numa import zone_states
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node
from tests.api.numa.builders import GPU
from tests.api.numa.test_many_nodes import GI, machines

Machines = list[tuple[Machine, Usage]]


def columns_of(nodes: Machines, kubelets: list[Kubelet]) -> NodeColumns:
    """A row for each machine and kubelet, and one that reports nothing."""
    columns = NodeColumns()
    pairs = [(machine, usage, kubelet) for machine, usage in nodes for kubelet in kubelets]
    for number in range(len(pairs) + 1):
        columns.set(a_node(f"n{number}"))
    for row, (machine, usage, kubelet) in enumerate(pairs):
        ids = tuple(range(machine.zones))
        columns.numa.set(row, ReportedNode(kubelet, machine, usage, ids, usage), [], [])
    return columns


def a_container(cpus: int, memory: int, gpus: int) -> ContainerDemand:
    amounts = (("memory", memory * GI),) if memory else ()
    return ContainerDemand("main", cpus=cpus, memory=amounts, devices=((GPU, gpus),) if gpus else ())


def rules_for(container: ContainerDemand, policy: str = "none", **more: Any) -> ClassRules:
    pod = PodDemand((container,), container.cpus, container.memory, container.devices)
    wanted = Wanted(container.cpus, dict(container.memory or ()).get("memory", 0), container.devices)
    return ClassRules(NumaRequest(policy, pinned=True, **more), pod, wanted)


def kubelets_of(options: tuple[bool, ...]) -> list[Kubelet]:
    closest, static_cpus, full, static_memory = options
    return [Kubelet(policy, False, closest, static_cpus, full, static_memory=static_memory) for policy in POLICIES]


SIZES = st.tuples(st.integers(0, 9), st.integers(0, 20), st.integers(0, 3))
OPTIONS = st.tuples(*[st.booleans()] * 4)


@given(st.lists(machines(), min_size=1, max_size=3), OPTIONS, SIZES)
def test_rows_are_refused_as_their_kubelets_would(
    nodes: Machines, options: tuple[bool, ...], sizes: tuple[int, int, int]
) -> None:
    columns, container = columns_of(nodes, kubelets_of(options)), a_container(*sizes)
    rules = rules_for(container)
    found = judge_rows(rules, Nodes(columns))
    for row in range(columns.size - 1):
        here = columns.numa.of_row(row)
        assert here is not None
        said = admit_to_managers(
            rules.demand or PodDemand(), here.reported.kubelet, here.reported.machine, here.usage.copy()
        )
        assert bool(found.unaligned[row]) is (said.reason == TOPOLOGY)
        assert bool(found.lacking[row]) is (said.reason not in ("", TOPOLOGY))
        alone = judge_one(rules, columns.numa, row, here)
        assert (alone.unaligned, alone.lacking) == (found.unaligned[row], found.lacking[row])
    assert not any(mask[-1] for mask in found)


@given(
    st.lists(machines(), min_size=1, max_size=3),
    OPTIONS,
    SIZES,
    st.sampled_from([*POLICIES, "isolated"]),
    st.booleans(),
    st.sampled_from([(), (1,), (0, 2)]),
)
def test_one_row_has_the_numbers_that_it_has_among_all(
    nodes: Machines,
    options: tuple[bool, ...],
    sizes: tuple[int, int, int],
    policy: str,
    stated: bool,
    ids: tuple[int, ...],
) -> None:
    columns, container = columns_of(nodes, kubelets_of(options)), a_container(*sizes)
    rules = rules_for(container, policy, stated=stated, avoided=ids, preferred=(0,))
    found, scores = judge_rows(rules, Nodes(columns)), score_rows(rules, Nodes(columns), 50)
    fresh = rules_for(container, policy, stated=stated, avoided=ids, preferred=(0,))
    for row in range(columns.size - 1):
        here = columns.numa.of_row(row)
        assert here is not None
        assert judge_one(fresh, columns.numa, row, here).broken == found.broken[row]
        assert score_one(fresh, columns.numa, row) == scores[row]
    assert scores[-1] == 50


@given(st.lists(machines(), min_size=1, max_size=2), OPTIONS, SIZES)
def test_members_that_are_counted_are_admitted_one_after_the_other(
    nodes: Machines, options: tuple[bool, ...], sizes: tuple[int, int, int]
) -> None:
    columns, container = columns_of(nodes, kubelets_of(options)), a_container(*sizes)
    rules = rules_for(container)
    counted = members_by_row(rules, Nodes(columns))
    refused = judge_rows(rules, Nodes(columns))
    for row in range(columns.size - 1):
        here = columns.numa.of_row(row)
        assert here is not None
        members = min(int(counted[row]), 20)
        if refused.unaligned[row] or refused.lacking[row] or members > 12:
            continue
        usage, admitted = here.usage, 0
        while admitted <= members:
            after = columns.numa.after(here, usage, rules.demand or PodDemand())
            if after is None:
                break
            usage, admitted = after, admitted + 1
        for number in range(1, members + 1):
            if surely_admitted(rules, columns.numa, row, here, number):
                assert admitted >= number
        if here.reported.kubelet.policy == "single-numa-node":
            assert members in (admitted, 1)


def test_forgotten_states_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_states, "_SPARE", 0)
    kubelet = Kubelet("single-numa-node", static_cpus=True)
    numa_nodes = tuple(0xF << 4 * zone for zone in range(3))
    cores = tuple(0x3 << cpu for cpu in range(0, 12, 2))
    machine = Machine(CpuLayout(numa_nodes, numa_nodes, cores), 0, ((10,) * 3,) * 3)
    columns = columns_of([(machine, idle(machine))], [kubelet])
    rules, numa = rules_for(a_container(2, 0, 0)), columns.numa
    before = numa.states.epoch
    for left in range(12):
        free, usage = (1 << left) - 1, idle(machine)
        usage.cpus = free
        numa.set(0, ReportedNode(kubelet, machine, usage, (0, 1, 2), usage), [], [])
        fits = any((free >> 4 * zone & 0xF).bit_count() >= 2 for zone in range(3))
        here = numa.of_row(0)
        assert here is not None
        assert judge_one(rules, numa, 0, here).unaligned is not fits
        assert bool(judge_rows(rules, Nodes(columns)).unaligned[0]) is not fits
    assert numa.states.epoch > before
    assert len(numa.states) < 12
