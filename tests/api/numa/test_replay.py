"""Pods are admitted again, in an order that explains the sums of a report."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.numa.machine import Kubelet, idle
from kubenexus.api.numa.node_options import node_options
from kubenexus.api.numa.pod_demand import PodDemand, pod_demand
from kubenexus.api.numa.replay import Step, in_use, replay
from kubenexus.sim.kubelets.numa_kubelet import NumaKubelet, a_machine
from tests.api.numa.builders import a_numa_pod, guaranteed

MACHINE = a_machine(2, 8, 32 << 30, reserved=0)
SIZES = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), min_size=1, max_size=6)


def a_kubelet(policy: str = "single-numa-node") -> NumaKubelet:
    return NumaKubelet("n", Kubelet(policy, static_cpus=True, static_memory=True), MACHINE)


def admitted(kubelet: NumaKubelet, sizes: list[tuple[int, int]]) -> list[PodDemand]:
    """Pods of so many CPUs, and of an init container with so many; those that the kubelet admits, in its order."""
    demands = []
    for number, (cpus, before) in enumerate(sizes):
        init = [guaranteed("init", str(before))] if before else []
        pod = a_numa_pod(guaranteed("main", str(cpus)), init=init, name=f"p{number}")
        if kubelet.admit(pod).admitted:
            demands.append(pod_demand(pod))
    return demands


def again(kubelet: NumaKubelet, pods: list[PodDemand]) -> list[Step] | None:
    """The pods admitted again from the sums of the kubelet's report."""
    left = in_use(MACHINE, idle(MACHINE))
    for number, zone in enumerate(kubelet.report().zones):
        for resource in zone.resources:
            left[resource.name][number] = int(resource.allocatable) - int(resource.available)
    return replay(kubelet.kubelet, MACHINE, idle(MACHINE), left, pods)


@given(SIZES, st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]))
def test_in_the_order_of_the_kubelet_all_is_as_it_is_there(sizes: list[tuple[int, int]], policy: str) -> None:
    kubelet = a_kubelet(policy)
    steps = again(kubelet, admitted(kubelet, sizes))
    assert steps is not None
    assert not steps or steps[-1].after == kubelet.usage


@given(SIZES, st.randoms(use_true_random=False))
def test_any_order_that_is_found_explains_what_is_reported(sizes: list[tuple[int, int]], chance: random.Random) -> None:
    kubelet = a_kubelet()
    pods = admitted(kubelet, sizes)
    chance.shuffle(pods)
    steps = again(kubelet, pods)
    if steps is not None:
        assert sorted(step.pod for step in steps) == list(range(len(pods)))
        taken = sum(each.cpus.bit_count() for step in steps for each in step.listed)
        assert taken == sum(each.cpus for pod in pods for each in pod.containers if not each.init)


def test_pods_that_overtook_each_other_are_found() -> None:
    """The first leaves five CPUs of a NUMA node, so that the second goes to the other, and the third to the first."""
    kubelet = a_kubelet()
    small, large, last = admitted(kubelet, [(3, 0), (6, 0), (5, 0)])
    steps = again(kubelet, [large, small, last])
    assert steps is not None
    assert [step.pod for step in steps] == [1, 0, 2]


def test_sums_that_no_order_gives_are_not_explained() -> None:
    kubelet = a_kubelet()
    pods = admitted(kubelet, [(3, 0), (2, 0)])
    assert again(kubelet, pods[:1]) is None
    assert again(kubelet, [*pods, *pods]) is None


@pytest.mark.parametrize(
    ("labels", "threads"),
    [
        pytest.param({}, 0, id="nothing is told"),
        pytest.param({"feature.node.kubernetes.io/cpu-hardware_multithreading": "true"}, 2, id="two"),
        pytest.param({"feature.node.kubernetes.io/cpu-hardware_multithreading": "false"}, 1, id="one"),
        pytest.param(
            {
                "feature.node.kubernetes.io/cpu-hardware_multithreading": "true",
                "numa.kubenexus.io/threads-per-core": "4",
            },
            4,
            id="our own label goes first",
        ),
    ],
)
def test_how_many_cpus_a_core_has_by_the_labels_of_its_node(labels: dict[str, str], threads: int) -> None:
    assert node_options(labels).threads == threads
