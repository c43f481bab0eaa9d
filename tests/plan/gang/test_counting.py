"""Gangs of two kinds on rows that they share: what counts against them is what the rules count, and nothing else."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from kubenexus.api.core import Node, Pod
from kubenexus.base.numbers import IntColumn
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Depends
from kubenexus.framework.profile import Lineup, Profile
from kubenexus.framework.verdict import NodeVerdict, Reason
from kubenexus.plan.decide import Planner
from kubenexus.plugins import default_profile, lineup
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_device_class, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.framework.rules import Rule, lineup_with

FIT = "NodeResourcesFit"
CLAIMED, CLASS = "example.com/claimed", a_device_class("class", resource="example.com/claimed")


def decided(pods: Iterable[Pod], nodes: Iterable[Node], rules: Lineup | None = None) -> Decision:
    pods = tuple(pods)
    snapshot = a_ledger(nodes, [], [CLASS]).snapshot()
    return Planner(rules or lineup()).decide(Job("default/gang", pods, len(pods)), snapshot, 0.0)


def members(number: int, kind: str, **asked: Any) -> list[Pod]:
    return [a_pod(f"{kind}{i}", **asked) for i in range(number)]


@pytest.mark.parametrize(
    ("cpu", "offered", "placed", "never"),
    [
        pytest.param(3, {}, True, False, id="claims stand in where no plugin offers it"),
        pytest.param(3, {CLAIMED: 2}, True, False, id="enough of it"),
        pytest.param(3, {CLAIMED: 1}, False, True, id="a plugin offers too little of it"),
        pytest.param(1, {}, False, True, id="what is not claimed is counted all the same"),
    ],
)
def test_a_resource_that_claims_stand_in_for_is_counted_where_a_plugin_offers_it(
    cpu: int, offered: Mapping[str, str], placed: bool, never: bool
) -> None:
    kinds = [*members(2, "worker", cpu=1, requests={CLAIMED: 1}), *members(1, "driver", cpu="900m")]
    decision = decided(kinds, [a_node("n", cpu=cpu, resources=offered)])
    assert decision.placed == placed
    assert never == (decision.certificate is not None and decision.certificate.never)


def test_a_resource_that_the_configuration_ignores_keeps_nobody_away() -> None:
    args = {"ignoredResources": ["example.com/foreign"]}
    enabled = [
        msgspec.structs.replace(each, args=args) if each.name == FIT else each for each in default_profile().plugins
    ]
    rules = lineup(Profile("ignoring", tuple(enabled)))
    kinds = [*members(1, "worker", cpu=1, requests={"example.com/foreign": 1}), *members(1, "driver", cpu=2)]
    assert not decided(kinds, [a_node("n", cpu=3)]).placed
    assert decided(kinds, [a_node("n", cpu=3)], rules).placed


class AtMostTwo(Rule):
    """A rule that counts, and does not say what."""

    name, depends = "AtMostTwo", Depends.USAGE

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        verdict.reject(nodes.used("pods") >= 2, Reason("two are enough"))

    def room(self, pod: PodClass, nodes: Nodes, room: IntColumn) -> None:
        np.minimum(room, np.maximum(2 - nodes.used("pods"), 0), out=room)


def test_a_users_rule_that_counts_one_kind_at_a_time_is_asked_after_each_member() -> None:
    kinds = [*members(2, "worker", cpu=1), *members(2, "driver", cpu=2)]
    decision = decided(kinds, [a_node(f"n{i}", cpu=8) for i in range(2)], lineup_with(AtMostTwo))
    homes = [placement.node for placement in decision.placements]
    assert sorted(homes) == ["n0", "n0", "n1", "n1"]
    assert not decided(kinds, [a_node("n", cpu=8)], lineup_with(AtMostTwo)).placed
