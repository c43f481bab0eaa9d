"""Which pods pending Workloads will ask for: a sum that is right after any changes, and bounded."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.kueue import KueueWorkload
from kubenexus.state import kueue_workloads
from kubenexus.state.kueue_workloads import KueueWorkloads, PodDemand
from kubenexus.state.pod_group_store import PodGroupStore
from tests.app.kueue_objects import a_workload, pods_of


def cpus(amount: int, together: int) -> PodDemand:
    return PodDemand((("cpu", amount),), together)


WORKLOADS = st.builds(
    lambda name, counts, admitted, cpu: a_workload(name, *counts, admitted=admitted, cpu=cpu),
    st.sampled_from("abc"),
    st.lists(st.integers(0, 3), max_size=3),
    st.booleans(),
    st.sampled_from(["1", "2", "no number"]),
)


@given(st.lists(st.one_of(WORKLOADS, st.sampled_from("abc")), max_size=20))
def test_the_demand_is_that_of_the_workloads_that_wait_now(changes: list[KueueWorkload | str]) -> None:
    followed = KueueWorkloads(PodGroupStore())
    now: dict[str, KueueWorkload] = {}
    for change in changes:
        if isinstance(change, str):
            now.pop(f"default/{change}", None)
            followed.remove(f"default/{change}")
        else:
            now[change.metadata.key] = change
            followed.set(change)
    expected: Counter[PodDemand] = Counter()
    for each in now.values():
        for pod_set in each.spec.pod_sets if each.status.admission is None else ():
            assert pod_set.template is not None
            cpu = str((pod_set.template.spec.containers[0].resources.requests or {})["cpu"])
            if pod_set.count and cpu.isdecimal():
                expected[cpus(1000 * int(cpu), pod_set.count)] += 1
    assert dict(followed.demand) == dict(expected)


@pytest.mark.parametrize(
    ("workload", "demand"),
    [
        pytest.param(a_workload("w", 8, admitted=False), {cpus(1000, 8): 1}, id="one that waits for quota"),
        pytest.param(a_workload("w", 8), {}, id="not one that has it"),
        pytest.param(a_workload("w", 8, admitted=False, active=False), {}, id="nor one that is switched off"),
        pytest.param(a_workload("w", 2**30, admitted=False), {cpus(1000, 10_000): 1}, id="a bounded number of pods"),
        pytest.param(a_workload("w", *[1] * 30, admitted=False), {cpus(1000, 1): 18}, id="and of pod sets"),
    ],
)
def test_what_counts_as_demand(workload: KueueWorkload, demand: dict[PodDemand, int]) -> None:
    followed = KueueWorkloads(PodGroupStore())
    followed.set(workload)
    assert followed.demand == demand


def test_beyond_the_bound_workloads_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kueue_workloads, "MAX_PENDING", 2)
    followed = KueueWorkloads(PodGroupStore())
    for name in "abc":
        followed.set(a_workload(name, 1, admitted=False))
    assert (followed.pending, followed.demand) == (2, {cpus(1000, 1): 2})
    followed.remove("default/a")
    followed.set(a_workload("c", 1, admitted=False))
    assert followed.pending == 2


def test_a_pod_is_admitted_with_the_workload_that_it_names_in_its_own_namespace() -> None:
    followed = KueueWorkloads(PodGroupStore())
    followed.set(a_workload("w", 2, 3, ended={"s1": 1}))
    (here,), (there,), (other,) = pods_of("w", 1), pods_of("w", 1, "elsewhere"), pods_of("v", 1)
    assert [followed.admits(pod) for pod in (here, there, other)] == [4, 0, 0]
