"""The keys of jobs: those of pods, gangs, gated members and holds are told apart, and shown as users write them."""

import pytest

from kubenexus.api.core import Pod, SchedulingGroup, WorkloadRef
from kubenexus.api.gangs.job_key import display_name, gang_key, gated_key, hold_name, is_gang_key, namespace_of
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.testing.builders import a_pod
from tests.api.gangs.builders import a_member


@pytest.mark.parametrize(
    ("key", "gang", "shown"),
    [
        pytest.param("ml/web-0", False, "ml/web-0", id="a pod"),
        pytest.param(gang_key("ml", "volcano", "llama"), True, "ml/llama", id="a gang"),
        pytest.param(gated_key(gang_key("ml", "volcano", "llama")), True, "ml/llama", id="its gated members"),
        pytest.param(f"ml/{hold_name('llama-0')}", False, "ml/llama-0#left", id="a hold"),
    ],
)
def test_a_key_says_what_it_is_the_key_of(key: str, gang: bool, shown: str) -> None:
    assert (is_gang_key(key), namespace_of(key), display_name(key)) == (gang, "ml", shown)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_member("a"), id="labels"),
        pytest.param(a_pod("a", scheduling_group=SchedulingGroup(pod_group_name="llama")), id="PodGroup"),
        pytest.param(a_pod("a", workload_ref=WorkloadRef(name="llama", pod_group="workers")), id="group of a Workload"),
        pytest.param(
            a_pod("a", workload_ref=WorkloadRef(name="llama", pod_group="workers", pod_group_replica_key="3")),
            id="replica of a Workload",
        ),
        pytest.param(
            a_pod("a", workload_ref=WorkloadRef(name="llama", pod_group="", pod_group_replica_key="3")),
            id="replica without a group",
        ),
    ],
)
def test_a_gangs_key_is_shown_as_its_declaration_is(pod: Pod) -> None:
    declared = declared_gang(pod)
    assert declared is not None
    assert display_name(declared.key) == declared.display_name


def test_an_empty_group_and_an_empty_replica_are_not_the_same() -> None:
    assert gang_key("ml", "workload", "llama", "3", "") != gang_key("ml", "workload", "llama", "", "3")
