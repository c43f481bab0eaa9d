"""The settings about tenants: their defaults, and what is wrong with them."""

from typing import Any

import pytest

from kubenexus.config.tenant_settings import TenantSettings, own_tier_profiles, tenant_settings
from tests.config.builders import loaded, problems


def settings(args: str = "{}", profile: str = "kubenexus-scheduler") -> TenantSettings:
    text = f"profiles: [{{schedulerName: {profile}, pluginConfig: [{{name: KubeNexus, args: {args}}}]}}]"
    return tenant_settings(loaded(text).args[profile], profile)


def test_tiers_count_20_and_10_and_pods_choose_none() -> None:
    usual = settings()
    assert [usual.boost(tier, "any") for tier in ("gold", "silver", "bronze")] == [20, 10, 0]
    assert usual.orders
    assert not usual.allow_pod_tier


def test_kube_schedulers_name_keeps_kube_schedulers_order_unless_told() -> None:
    assert not settings(profile="default-scheduler").orders
    told = settings("{tierBoosts: {gold: 5}}", "default-scheduler")
    assert [told.boost(tier, "any") for tier in ("gold", "silver", "bronze")] == [5, 10, 0]
    assert settings("{namespacePriorities: {a: 1}}", "default-scheduler").boost("gold", "a") == 1


def test_a_namespaces_number_is_added_to_its_tiers() -> None:
    given = settings("{namespacePriorities: {web: 100, nightly: -15}}")
    assert [given.boost("gold", name) for name in ("web", "nightly", "other")] == [120, 5, 20]


def test_tiers_may_be_switched_off() -> None:
    assert not settings("{tierBoosts: {gold: 0, silver: 0}}").orders


def test_each_profile_says_whether_its_pods_choose() -> None:
    asks = "{schedulerName: a, pluginConfig: [{name: KubeNexus, args: {allowPodTier: true}}]}"
    text = f"profiles: [{asks}, {{schedulerName: b}}]"
    assert own_tier_profiles(loaded(text).args) == ["a"]


AT = "profiles[0].pluginConfig[0].args."
NAMESPACE = "must be the name of a namespace: lower case letters, digits and '-'"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ("{tierBoosts: {gold: -1}}", "tierBoosts.gold: Invalid value: -1: not in valid range [0, 1000000]"),
        (
            "{tierBoosts: {bronze: 1000001}}",
            "tierBoosts.bronze: Invalid value: 1000001: not in valid range [0, 1000000]",
        ),
        ("{namespacePriorities: {Web: 1}}", f'namespacePriorities.Web: Invalid value: "Web": {NAMESPACE}'),
        (
            "{namespacePriorities: {web: 9999999}}",
            "namespacePriorities.web: Invalid value: 9999999: not in valid range [-1000000, 1000000]",
        ),
    ],
)
def test_what_cannot_be_is_said_with_its_place(args: str, problem: str) -> None:
    assert problems(f"profiles: [{{pluginConfig: [{{name: KubeNexus, args: {args}}}]}}]") == [AT + problem]


@pytest.mark.parametrize("args", ["{tierBoosts: {platinum: 5}}", "{namespacePriorities: [web]}", "{allowPodTier: 5}"])
def test_other_shapes_are_problems_too(args: str) -> None:
    found: Any = problems(f"profiles: [{{pluginConfig: [{{name: KubeNexus, args: {args}}}]}}]")
    assert len(found) == 1


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param(
            "schedulerName: default-scheduler, pluginConfig: [{name: TenantHardwareAffinityScore, args: "
            "{allowedTiers: {bronze: [economy]}}}]",
            "have no effect: TenantHardwareAffinityScore is not enabled in this profile",
            id="a policy of a plugin that is not enabled",
        ),
        pytest.param(
            "pluginConfig: [{name: GPUTopology, args: {x: 1}}]",
            "have no effect: GPUTopology takes none",
            id="a plugin of ours without arguments",
        ),
    ],
)
def test_arguments_without_effect_are_noted(profile: str, expected: str) -> None:
    (note,) = [each for each in loaded(f"profiles: [{{{profile}}}]").notes if "args" in each.path]
    assert note.message == expected
