"""Gangs of two kinds on rows that they share: what counts against them is what the rules count, and nothing else."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from kubenexus.api.core import ContainerStatus, Node, Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.decision import Decision
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.job import Job
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.profile import Profile, ProfilePlugins
from kubenexus.framework.verdict import NodeVerdict, Reason
from kubenexus.plan.decide import Planner
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_device_class, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.framework.rules import Rule, lineup_with

FIT = "NodeResourcesFit"
CLAIMED, CLASS = "example.com/claimed", a_device_class("class", resource="example.com/claimed")


def decided(pods: Iterable[Pod], nodes: Iterable[Node], rules: ProfilePlugins | None = None) -> Decision:
    pods = tuple(pods)
    snapshot = a_ledger(nodes, [], [CLASS]).snapshot()
    return Planner(rules or profile_plugins()).decide(Job("default/gang", pods, len(pods)), snapshot, 0.0)


def members(number: int, kind: str, **asked: Any) -> list[Pod]:
    return [a_pod(f"{kind}{i}", **asked) for i in range(number)]


@pytest.mark.parametrize(
    ("cpu", "offered", "placed", "never"),
    [
        pytest.param(3, {}, False, False, id="there are no devices for claims, but there may be"),
        pytest.param(3, {CLAIMED: 2}, True, False, id="enough of it"),
        pytest.param(3, {CLAIMED: 1}, False, True, id="a plugin offers too little of it"),
        pytest.param(1, {}, False, False, id="beside claims nothing is counted exactly"),
    ],
)
def test_a_resource_that_a_device_class_backs_is_counted_where_a_plugin_offers_it(
    cpu: int, offered: Mapping[str, str], placed: bool, never: bool
) -> None:
    kinds = [*members(2, "worker", cpu=1, requests={CLAIMED: 1}), *members(1, "driver", cpu="900m")]
    decision = decided(kinds, [a_node("n", cpu=cpu, resources=offered)])
    assert decision.placed == placed
    assert never == (decision.gang_diagnosis is not None and decision.gang_diagnosis.exceeds_cluster)


def test_a_resource_that_the_configuration_ignores_keeps_nobody_away() -> None:
    args = {"ignoredResources": ["example.com/foreign"]}
    enabled = [
        msgspec.structs.replace(each, args=args) if each.name == FIT else each for each in default_profile().plugins
    ]
    rules = profile_plugins(Profile("ignoring", tuple(enabled)))
    kinds = [*members(1, "worker", cpu=1, requests={"example.com/foreign": 1}), *members(1, "driver", cpu=2)]
    assert not decided(kinds, [a_node("n", cpu=3)]).placed
    assert decided(kinds, [a_node("n", cpu=3)], rules).placed


class AtMostTwo(Rule):
    """A rule that counts, and does not say what."""

    name, depends = "AtMostTwo", Depends.USAGE

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        verdict.reject(nodes.used("pods") >= 2, Reason("two are enough"))

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        np.minimum(capacity, np.maximum(2 - nodes.used("pods"), 0), out=capacity)


def test_a_users_rule_that_counts_one_kind_at_a_time_is_asked_after_each_member() -> None:
    kinds = [*members(2, "worker", cpu=1), *members(2, "driver", cpu=2)]
    decision = decided(kinds, [a_node(f"n{i}", cpu=8) for i in range(2)], lineup_with(AtMostTwo))
    homes = [placement.node for placement in decision.placements]
    assert sorted(homes) == ["n0", "n0", "n1", "n1"]
    assert not decided(kinds, [a_node("n", cpu=8)], lineup_with(AtMostTwo)).placed


def given(pod: Pod, cpu: str) -> Pod:
    """It waits, and its status tells of so much that its container has already."""
    had = ContainerStatus(name=pod.spec.containers[0].name, allocated_resources={"cpu": cpu})
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, container_statuses=[had]))


def test_members_that_take_more_than_they_ask_for_leave_less_to_each_other() -> None:
    """Each is admitted by what it asks for, as upstream does; what it then takes nobody else is promised."""
    pods = [given(a_pod(name, cpu=1), "6") for name in ("first", "second")]
    assert not decided(pods, [a_node("n1", cpu=6)]).placed
    two = decided(pods, [a_node("n1", cpu=6), a_node("n2", cpu=6)])
    assert {placement.node for placement in two.placements} == {"n1", "n2"}


def test_after_a_member_that_takes_more_than_it_asks_for_nobody_is_put_on_its_node() -> None:
    pods = [given(a_pod("greedy", cpu=1), "6"), a_pod("modest", cpu=1, memory="1Gi")]
    placements = decided(pods, [a_node("n1", cpu=6)]).placements
    assert [placement.pod for placement in placements] == ["default/modest", "default/greedy"]


def test_asking_for_any_number_of_what_a_device_class_backs_keeps_the_gang_waiting() -> None:
    """A number that no sum could hold is no more than any other."""
    pods = [a_pod("plain", cpu=1), *members(3, "claiming", cpu=1, requests={CLAIMED: 2**62 - 1})]
    decision = decided(pods, [a_node("n1", cpu=6)])
    assert not decision.placements
    assert "exceeds the claim limit of 32" in decision.sentence()
