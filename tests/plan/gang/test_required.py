"""What a gang requires of its topology holds whatever else ties its members: all are in one domain, or none is placed.

Naive on purpose: where members go is compared with the labels of the nodes alone.
"""

from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod, TopologySpreadConstraint
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger

RULES = profile_plugins()
RACK, CLIQUE, NODE = "topology.kubernetes.io/rack", "nvidia.com/gpu.clique", "node"
LEVELS = {"rack": RACK, "clique": CLIQUE, "zone": ZONE, RACK: RACK, "hostname": HOSTNAME}
SPREADS = ("near", "apart", "even")


class Story(NamedTuple):
    """Nodes as (cpu, labels), members of kinds that ask for so much cpu each, and what ties all of them: pairs of a tie
    and a label. `placed` are nodes where members run already."""

    nodes: tuple[tuple[int, dict[str, str]], ...]
    kinds: tuple[tuple[int, int], ...]
    required: str
    ties: tuple[tuple[str, str], ...] = ()
    minimum: int = 1
    placed: tuple[int, ...] = ()

    def made(self) -> list[Node]:
        return [a_node(f"n{i}", cpu=cpu, labels=labels) for i, (cpu, labels) in enumerate(self.nodes)]

    def job(self) -> Job:
        pods = [self._member(f"m{k}-{i}", cpu) for k, (number, cpu) in enumerate(self.kinds) for i in range(number)]
        minimum = min(self.minimum, len(pods))
        return Job(
            "ns/gang/g", tuple(pods), minimum, TopologyRequest(self.required), tuple(f"n{i}" for i in self.placed)
        )

    def _member(self, name: str, cpu: int) -> Pod:
        selector = LabelSelector(match_labels={"app": "gang"})
        return a_pod(
            name,
            labels={"app": "gang"},
            cpu=cpu,
            near=[f"app=gang per {key}" for tie, key in self.ties if tie == "near"],
            apart=[f"app=gang per {key}" for tie, key in self.ties if tie == "apart"],
            topology_spread_constraints=[
                TopologySpreadConstraint(topology_key=key, label_selector=selector)
                for tie, key in self.ties
                if tie == "even"
            ],
        )

    def domain(self, node: str) -> str:
        key = LEVELS[self.required]
        return node if key == HOSTNAME else self.nodes[int(node[1:])][1].get(key, "")


def decided(story: Story) -> Decision:
    there = [a_pod(f"old{i}", labels={"app": "gang"}, node=f"n{node}") for i, node in enumerate(story.placed)]
    return Planner(RULES).decide(story.job(), a_ledger(story.made(), there).snapshot(), 0.0)


def domains(story: Story) -> set[str]:
    return {story.domain(each.node) for each in decided(story).placements}


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Racks lie in zones or not, and any label may be missing from any node."""
    values = {ZONE: ["", "a", "b"], RACK: ["", "r1", "r2"], CLIQUE: ["", "c1", "c2"], NODE: ["", "x", "y"]}
    nodes = []
    for _ in range(draw(st.integers(1, 6))):
        labels = {key: draw(st.sampled_from(names)) for key, names in values.items()}
        nodes.append((draw(st.integers(1, 6)), {key: value for key, value in labels.items() if value}))
    ties = st.tuples(st.sampled_from(SPREADS), st.sampled_from([*values, HOSTNAME]))
    return Story(
        tuple(nodes),
        tuple(draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=2))),
        draw(st.sampled_from(sorted(LEVELS))),
        tuple(draw(st.lists(ties, max_size=3, unique=True))),
        draw(st.integers(1, 6)),
        tuple(draw(st.lists(st.integers(0, len(nodes) - 1), max_size=2))),
    )


RACKED, PLAIN = (2, {RACK: "r1", CLIQUE: "c1", ZONE: "a"}), (8, {ZONE: "b"})
ONE_SMALL_RACK = (RACKED, PLAIN, PLAIN)
TIES = [
    pytest.param((), id="nothing ties the members"),
    pytest.param((("near", ZONE),), id="affinity per zone"),
    pytest.param((("near", HOSTNAME),), id="affinity per hostname"),
    pytest.param((("near", ZONE), ("near", HOSTNAME)), id="affinity per zone and per hostname"),
    pytest.param((("near", ZONE), ("apart", HOSTNAME)), id="affinity per zone, anti-affinity per hostname"),
    pytest.param((("near", ZONE), ("even", HOSTNAME)), id="affinity per zone, spread over hostnames"),
    pytest.param((("apart", HOSTNAME), ("even", ZONE)), id="anti-affinity per hostname, spread over zones"),
]


@pytest.mark.parametrize("required", ["rack", "clique"])
@pytest.mark.parametrize("ties", TIES)
def test_nodes_outside_of_the_required_level_hold_no_member(ties: tuple[tuple[str, str], ...], required: str) -> None:
    assert not domains(Story(ONE_SMALL_RACK, ((3, 2),), required, ties, minimum=3))


@given(stories())
@example(Story(ONE_SMALL_RACK, ((3, 2),), "rack", (("near", ZONE),), 3))
@example(Story(((8, {NODE: "x"}), (8, {NODE: "y", RACK: "r1"})), ((2, 1),), "rack", (("near", NODE),), 2))
@example(Story(((1, {ZONE: "a"}), (4, {ZONE: "b", RACK: "r3"})), ((3, 1),), "zone", (), 3, (0,)))
def test_all_members_are_in_one_domain_of_the_required_level_or_none_is_placed(story: Story) -> None:
    """Beside those that run already, if they are in such a domain."""
    found = domains(story)
    assert "" not in found
    assert len(found) <= 1
    joined = {story.domain(f"n{i}") for i in story.placed} - {""}
    assert not joined or found <= joined


def test_members_follow_those_that_run_into_their_zone_although_a_rack_elsewhere_is_tighter() -> None:
    nodes = ((1, {ZONE: "a"}), (8, {ZONE: "a"}), (4, {ZONE: "b", RACK: "r3"}))
    assert domains(Story(nodes, ((3, 1),), "zone", (), 3, placed=(0,))) == {"a"}


def test_a_label_called_node_is_a_label_like_any_other() -> None:
    nodes = ((1, {NODE: "x"}), (2, {NODE: "y"}), (2, {NODE: "y"}))
    story = Story(nodes, ((3, 1),), "", (("near", NODE),), 3)
    assert {each.node for each in decided(story).placements} == {"n1", "n2"}
