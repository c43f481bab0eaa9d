"""What pods hold by a report: it stays known what was confirmed, whatever comes after."""

from collections.abc import Sequence

from kubenexus.api.core import Pod
from kubenexus.api.numa.machine import Kubelet
from kubenexus.api.numa.pod_demand import PodDemand, pod_demand
from kubenexus.api.numa.reported_node import ReportedNode, Totals, reported_node
from kubenexus.sim.kubelets.numa_kubelet import NumaKubelet, a_machine
from kubenexus.state.numa.explaining import Explanation, explanation
from tests.api.numa.builders import a_numa_pod, guaranteed


def a_kubelet() -> NumaKubelet:
    kubelet = Kubelet("single-numa-node", static_cpus=True, static_memory=True)
    return NumaKubelet("n", kubelet, a_machine(2, 8, 32 << 30, reserved=0))


def a_sized_pod(name: str, cpus: int, init: int = 0) -> Pod:
    before = [guaranteed("init", str(init))] if init else []
    return a_numa_pod(guaranteed("main", str(cpus)), init=before, name=name)


def reported(kubelet: NumaKubelet) -> ReportedNode:
    found = reported_node(kubelet.report(), Totals(), hidden=False)
    assert found is not None
    return found


def demands(pods: Sequence[Pod]) -> dict[str, PodDemand]:
    return {pod.metadata.name: pod_demand(pod) for pod in pods}


def free(kubelet: NumaKubelet) -> list[int]:
    return [(zone & kubelet.usage.cpus).bit_count() for zone in kubelet.machine.cpus.numa]


def free_by(report: ReportedNode, found: Explanation) -> list[int]:
    return [(zone & found.usage.cpus).bit_count() for zone in report.machine.cpus.numa]


def test_cpus_that_an_init_container_keeps_are_found_after_a_restart() -> None:
    """A pod of one CPU leaves half a core. The init container takes it, and the container after it a whole core."""
    kubelet = a_kubelet()
    pods = [a_sized_pod("odd", 1), a_sized_pod("keeps", 2, init=1)]
    assert all(kubelet.admit(pod).admitted for pod in pods)
    report = reported(kubelet)
    found = explanation(report, demands(pods), {}, {})
    assert free(kubelet) == free_by(report, found) == [4, 8]
    assert found.held.keys() == {"odd", "keeps"}


def test_pods_in_another_order_are_admitted_again_after_those_that_are_confirmed() -> None:
    kubelet = a_kubelet()
    first, one, other = a_sized_pod("first", 4), a_sized_pod("one", 2), a_sized_pod("other", 3)
    kubelet.admit(first)
    report = reported(kubelet)
    confirmed = explanation(report, demands([first]), {}, {}).held
    expected = explanation(reported(_with(first, one, other)), demands([first, one, other]), {}, {}).held
    kubelet.admit(other)
    kubelet.admit(one)
    report = reported(kubelet)
    found = explanation(report, demands([first, one, other]), expected, confirmed)
    assert found.held.keys() == {"first", "one", "other"}
    assert found.held["first"] == confirmed["first"]
    assert free_by(report, found) == free(kubelet) == [1, 6]


def test_what_is_confirmed_stays_known_if_a_later_pod_is_not_explained() -> None:
    """A pod has left that the scheduler never saw: the last one lies where it would not go now."""
    kubelet = a_kubelet()
    odd, keeps, unseen, last = (
        a_sized_pod("odd", 1),
        a_sized_pod("keeps", 2, 1),
        a_sized_pod("u", 4),
        a_sized_pod("l", 3),
    )
    kubelet.admit(odd)
    kubelet.admit(keeps)
    confirmed = explanation(reported(kubelet), demands([odd, keeps]), {}, {}).held
    kubelet.admit(unseen)
    kubelet.admit(last)
    kubelet.remove(unseen.key)
    report = reported(kubelet)
    found = explanation(report, demands([odd, keeps, last]), confirmed, confirmed)
    assert found.held == confirmed
    assert free_by(report, found) == free(kubelet) == [4, 5]


def test_a_pod_that_was_still_there_when_another_came_explains_where_that_went() -> None:
    kubelet = a_kubelet()
    large, small = a_sized_pod("large", 7), a_sized_pod("small", 3)
    kubelet.admit(large)
    confirmed = explanation(reported(kubelet), demands([large]), {}, {}).held
    kubelet.admit(small)
    kubelet.remove(large.key)
    report = reported(kubelet)
    found = explanation(report, demands([small]), {}, confirmed)
    assert found.held.keys() == {"small"}
    assert free_by(report, found) == free(kubelet) == [8, 5]


def _with(*pods: Pod) -> NumaKubelet:
    kubelet = a_kubelet()
    for pod in pods:
        kubelet.admit(pod)
    return kubelet
