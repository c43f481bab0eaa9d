"""Which profiles preempt, and by which rules."""

import pytest

from kubenexus.app.preemption.policies import preemption_policy
from kubenexus.config.preemption_settings import gang_preemption_settings, preemption_settings
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import BUILT_IN
from tests.config.builders import loaded


@pytest.mark.parametrize(
    ("profile", "default", "gang"),
    [
        pytest.param("{schedulerName: kubenexus-scheduler}", False, True, id="the shipped profile, for whole jobs"),
        pytest.param("{schedulerName: packing}", False, True, id="another name, too"),
        pytest.param("{schedulerName: default-scheduler}", True, False, id="kube-scheduler's name, as kube-scheduler"),
        pytest.param(
            "{schedulerName: default-scheduler, plugins: {postFilter: {enabled: [{name: GangPreemption}]}}}",
            True,
            True,
            id="kube-scheduler's name, if the file says so",
        ),
        pytest.param(
            "{schedulerName: a, plugins: {multiPoint: {disabled: [{name: GangPreemption}]}}}", False, False, id="off"
        ),
        pytest.param(
            "{schedulerName: a, plugins: {postFilter: {disabled: [{name: '*'}]}}}", False, False, id="off at the point"
        ),
        pytest.param(
            "{schedulerName: default-scheduler, plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}}",
            False,
            False,
            id="kube-scheduler's is off",
        ),
    ],
)
def test_which_preemption_a_profile_has(profile: str, default: bool, gang: bool) -> None:
    configuration = loaded(f"profiles: [{profile}]", BUILT_IN)
    name = configuration.profiles[0].name
    assert (preemption_settings(configuration, name) is not None) == default
    assert (gang_preemption_settings(configuration, name) is not None) == gang


def test_the_defaults_of_the_file_are_those_of_the_planner() -> None:
    configuration = loaded("", BUILT_IN)
    assert preemption_policy(gang_preemption_settings(configuration, "kubenexus-scheduler")) == PreemptionPolicy()


def test_settings_reach_the_planner() -> None:
    bools = "tierPreemption: true, servicesPreemptBatch: true, reclaim: true"
    args = (
        f"{{pdbPolicy: prefer, {bools}, protectedNamespaces: [a], maxVictims: 7, consolidation: true, maxMovedPods: 3}}"
    )
    config = f"pluginConfig: [{{name: GangPreemption, args: {args}}}]"
    configuration = loaded(f"profiles: [{{schedulerName: a, {config}}}]", BUILT_IN)
    assert preemption_policy(gang_preemption_settings(configuration, "a")) == PreemptionPolicy(
        hard_budgets=False,
        tier_preemption=True,
        services_preempt_batch=True,
        reclaim=True,
        protected_namespaces=frozenset({"a"}),
        max_victims=7,
        max_moves=3,
    )
