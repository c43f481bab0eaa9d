"""Any sequence of placements, removals and reports: no NUMA node is over what it has, and a restart changes nothing."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.numa.machine import POLICIES, Kubelet
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.sim.kubelets.numa_kubelet import NumaKubelet, a_machine
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import Run, a_ledger
from tests.api.numa.builders import GPU, a_numa_pod, guaranteed

GI = 1 << 30
NODES = ("a", "b")
SIZES = st.tuples(st.just("place"), st.integers(1, 9), st.integers(1, 12), st.integers(0, 2))
STEPS = st.one_of(
    SIZES,
    SIZES,
    st.tuples(st.just("gang"), st.integers(1, 4), st.integers(1, 4), st.integers(0, 1)),
    st.tuples(st.just("remove"), st.integers(0, 9)),
    st.tuples(st.just("report")),
)
PLUGINS = profile_plugins(shipped_profile())


class Cluster:
    """Two nodes with kubelets of their own, and a scheduler."""

    def __init__(self, policy: str, pod_scope: bool) -> None:
        kubelet = Kubelet(policy, pod_scope, static_cpus=True, static_memory=True)
        self.kubelets = {name: NumaKubelet(name, kubelet, a_machine(2, 8, 16 * GI, {GPU: 2}, 0)) for name in NODES}
        self.nodes = [a_node(name, cpu=16, memory="32Gi", resources={GPU: 4}) for name in NODES]
        self.ledger = self.rebuilt([])
        self.run = Run(self.ledger, Planner(PLUGINS), {})
        self.bound: dict[str, Pod] = {}
        self.number = 0

    def rebuilt(self, pods: list[Pod]) -> Ledger:
        """A ledger of the same objects, as after a restart."""
        ledger = a_ledger(self.nodes, pods)
        for each in self.kubelets.values():
            ledger.upsert_node_topology(each.report())
        ledger.read_devices()
        return ledger

    def place(self, cpu: int, gib: int, gpus: int, members: int = 1) -> None:
        self.number += 1
        pods = [
            a_numa_pod(guaranteed("main", str(cpu), f"{gib}Gi", gpus), name=f"p{self.number}-{member}")
            for member in range(members)
        ]
        job = Job.of(pods[0]) if members == 1 else Job(f"default/gang/g{self.number}", tuple(pods), members)
        placements = self.run.then([job]).placements
        for pod in pods:
            node = placements.get(pod.metadata.name)
            if node is None:
                continue
            if not self.kubelets[node].admit(pod).admitted:
                self.ledger.remove_pod(pod.key)
                continue
            spec = msgspec.structs.replace(pod.spec, node_name=node)
            started = f"2026-01-01T00:00:{len(self.bound) % 60:02}Z"
            status = msgspec.structs.replace(pod.status, start_time=started)
            self.bound[pod.key] = msgspec.structs.replace(pod, spec=spec, status=status)
            self.ledger.upsert_pod(self.bound[pod.key])

    def remove(self, number: int) -> None:
        if self.bound:
            key = sorted(self.bound)[number % len(self.bound)]
            del self.bound[key]
            for each in self.kubelets.values():
                each.remove(key)
            self.ledger.remove_pod(key)

    def report(self) -> None:
        for each in self.kubelets.values():
            self.ledger.upsert_node_topology(each.report())
        self.ledger.read_devices()

    def free(self, ledger: Ledger) -> list[Any]:
        """What is free on each NUMA node."""
        numa = ledger.nodes.numa
        states = [numa.states.states[code] for name in NODES for code in numa.codes_of(ledger.nodes.row_of[name])]
        return [(state.free_cpus, state.memory, state.devices) for state in states]

    def check(self) -> None:
        for name in NODES:
            here = self.ledger.nodes.numa.of_row(self.ledger.nodes.row_of[name])
            assert here is not None
            held = 0
            for each in here.holdings.values():
                assert not held & each.cpus, "two pods hold a CPU"
                held |= each.cpus
            assert not held & here.usage.cpus
            machine, usage = here.reported.machine, here.usage
            for kind, amounts in usage.memory.items():
                assert all(0 <= left <= total for left, total in zip(amounts, machine.memory[kind], strict=True))
            assert all(left < 1 << len(machine.devices[name]) for name, left in usage.devices.items())
            for state in self.free(self.ledger):
                assert state[0] >= 0
                assert all(0 <= free <= total for _, total, free in (*state[1], *state[2]))


@given(st.sampled_from(POLICIES), st.booleans(), st.lists(STEPS, max_size=14))
def test_no_numa_node_is_over_what_it_has_and_a_restart_changes_nothing(
    policy: str, pod_scope: bool, steps: list[tuple[Any, ...]]
) -> None:
    cluster = Cluster(policy, pod_scope)
    for what, *more in steps:
        if what in ("place", "gang"):
            cpu, gib, gpus = more
            cluster.place(cpu, gib, gpus, 3 if what == "gang" else 1)
        elif what == "remove":
            cluster.remove(*more)
        else:
            cluster.report()
        cluster.check()
    cluster.report()
    cluster.check()
    assert cluster.free(cluster.ledger) == cluster.free(cluster.rebuilt(list(cluster.bound.values())))
