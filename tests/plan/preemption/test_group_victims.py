"""Which members of pod groups go with a victim, in a profile with kube-scheduler's name."""

import msgspec
import pytest

from kubenexus.api.core import Pod, SchedulingGroup
from kubenexus.api.gangs.declaration import POD_GROUP
from kubenexus.api.workloads import DisruptionChoice, DisruptionMode
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.default_preemption import CandidateLimits
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from kubenexus.testing.oracle.upstream import BuiltProfile
from tests.api.gangs.builders import pod_group

ALL, SINGLE = DisruptionMode(all=DisruptionChoice()), DisruptionMode(single=DisruptionChoice())
GROUPED = SchedulingGroup(pod_group_name="preemptor")


def member(name: str, node: str) -> Pod:
    return a_pod(name, cpu=2, node=node, scheduling_group=SchedulingGroup(pod_group_name="victims"))


@pytest.mark.parametrize(
    ("group", "mode", "expected"),
    [
        pytest.param(GROUPED, ALL, 2, id="a group that only goes as a whole, for a pod of a group"),
        pytest.param(GROUPED, SINGLE, 1, id="a group whose members go one by one"),
        pytest.param(None, ALL, 1, id="for a pod in no group, as kube-scheduler"),
    ],
)
def test_a_group_goes_as_a_whole_if_it_says_so(
    group: SchedulingGroup | None, mode: DisruptionMode, expected: int
) -> None:
    ledger = a_ledger([a_node(f"n{i}", cpu=2) for i in range(3)], [member(f"v{i}", f"n{i}") for i in range(2)])
    ledger.upsert_pod(a_pod("other", cpu=2, node="n2", priority=200))
    made = pod_group("victims", 2)
    spec = msgspec.structs.replace(made.spec, disruption_mode=mode)
    ledger.groups.seen(POD_GROUP, msgspec.structs.replace(made, spec=spec))
    planner = Planner(BuiltProfile().profile_plugins, preemption=CandidateLimits())
    urgent = a_pod("urgent", cpu=2, priority=100, scheduling_group=group)
    decision = planner.decide(Job.of(urgent), ledger.snapshot(), 0.0)
    assert decision.preemption is not None
    assert len(decision.preemption.victims) == expected
