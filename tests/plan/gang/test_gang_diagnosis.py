"""A refused gang is told exactly what it lacks: with that much more in the domain that is named it is placed, and with
room for one member less it is not."""

import itertools
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kubenexus.api.core import TopologySpreadConstraint
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework.decision import Decision, GangDiagnosis
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.empty_capacity import TOO_LARGE
from kubenexus.plugins import profile_plugins
from kubenexus.testing.builders import GPU, HOSTNAME, ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.plan.gang.small_gangs import RACK, GangInstance, Kind, Place, puzzles

RULES = profile_plugins()


def decided(puzzle: GangInstance) -> Decision:
    return Planner(RULES).decide(puzzle.job(), a_ledger(puzzle.nodes(), puzzle.others()).snapshot(), 0.0)


def grown(puzzle: GangInstance, gang_diagnosis: GangDiagnosis, members: int) -> GangInstance:
    """With a node more for each of so many members, in the domain that the certificate names."""
    kind, domain = puzzle.kinds[0], gang_diagnosis.domain or "new"
    zone = domain if puzzle.required == ZONE else "new"
    rack = domain if puzzle.required == RACK else "new"
    more = [Place(f"more-{i}", kind.cpu, kind.gpu, zone, rack) for i in range(members)]
    return puzzle._replace(places=(*puzzle.places, *more))


@given(puzzle=puzzles())
@example(GangInstance((Place("n0", 3, 0, "a", "r1"), Place("n1", 2, 0, "a", "r2")), (Kind(4, 1),), 4, required=RACK))
def test_what_is_named_is_what_is_missing(puzzle: GangInstance) -> None:
    decision = decided(puzzle)
    assume(not decision.placed and (puzzle.total > 1 or puzzle.required))  # a pod by itself has no certificate
    gang_diagnosis = decision.gang_diagnosis
    assert gang_diagnosis is not None
    assert not gang_diagnosis.exhausted
    assert decision.code is Code.UNSCHEDULABLE
    assert gang_diagnosis.fit == max((puzzle.most(site) for site in puzzle.sites()), default=0)
    assert decided(grown(puzzle, gang_diagnosis, gang_diagnosis.missing)).placed
    assert not decided(grown(puzzle, gang_diagnosis, gang_diagnosis.missing - 1)).placed


# --- members that are spread ----------------------------------------------------------------------------------------


def with_room(puzzle: GangInstance, domain: str, more: Mapping[str, int]) -> GangInstance:
    """With room for so many members more in domains of the label they are spread over, on nodes of the gang's site."""
    kind, places = puzzle.kinds[0], list(puzzle.places)
    for value, members in more.items():
        site = [i for i, place in enumerate(places) if not puzzle.required or place.domain(puzzle.required) == domain]
        there = next(i for i in site if places[i].domain(puzzle.key) == value)
        cpu, gpu = places[there].cpu + members * kind.cpu, places[there].gpu + members * kind.gpu
        places[there] = places[there]._replace(cpu=cpu, gpu=gpu)
    return puzzle._replace(places=tuple(places))


def refused(puzzle: GangInstance) -> tuple[GangInstance, GangDiagnosis, list[str]]:
    """A gang that is refused, why, and the domains of its label within its site."""
    puzzle = puzzle._replace(kinds=(puzzle.kinds[0]._replace(port=0),))  # a port is no room
    gang_diagnosis = decided(puzzle).gang_diagnosis
    assume(gang_diagnosis is not None)
    assert gang_diagnosis is not None
    site = [p for p in puzzle.places if not puzzle.required or p.domain(puzzle.required) == gang_diagnosis.domain]
    return puzzle, gang_diagnosis, sorted({place.domain(puzzle.key) for place in site} - {""})


@given(puzzle=puzzles(ties=("even",)))
@example(GangInstance((Place("n0", 9, 0, "a", "", 3), Place("n1", 1, 0, "b", "")), (Kind(5, 1),), 5, "even", ZONE, 1))
@example(
    GangInstance((Place("n0", 9, 0, "a", ""), *(Place(z, 1, 0, z, "") for z in "bc")), (Kind(9, 1),), 9, "even", ZONE)
)
def test_members_that_are_spread_are_told_where_room_is_missing(puzzle: GangInstance) -> None:
    puzzle, gang_diagnosis, inside = refused(puzzle)
    more = {shortage.domain: shortage.members for shortage in gang_diagnosis.short_domains}
    if not more:
        assert not decided(with_room(puzzle, gang_diagnosis.domain, dict.fromkeys(inside, 20))).placed, "none would do"
        return
    assert decided(with_room(puzzle, gang_diagnosis.domain, more)).placed
    less = sum(more.values()) - 1
    for domains in itertools.combinations_with_replacement(inside, less if less < 4 else 0):
        assert not decided(with_room(puzzle, gang_diagnosis.domain, Counter(domains))).placed, "wherever it is"


def test_where_domains_are_too_few_no_room_would_do() -> None:
    """With fewer zones than `minDomains` the emptiest counts as empty, however much room there is."""
    rule = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "gang"}),
        min_domains=3,
    )
    pods = [a_pod(f"m{i}", labels={"app": "gang"}, cpu=1, topology_spread_constraints=[rule]) for i in range(4)]
    nodes = [a_node(zone, cpu=99, zone=zone) for zone in "ab"]
    decision = Planner(RULES).decide(Job("default/gang", tuple(pods), 4), a_ledger(nodes, []).snapshot(), 0.0)
    assert "2 of at least 4 members fit in the whole cluster; more room on these nodes would not help" in (
        decision.sentence()
    )


@given(puzzle=puzzles(kinds=2))
def test_a_gang_of_several_kinds_is_told_too(puzzle: GangInstance) -> None:
    puzzle = puzzle._replace(kinds=tuple(kind._replace(port=0) for kind in puzzle.kinds))
    gang_diagnosis = decided(puzzle).gang_diagnosis
    assume(gang_diagnosis is not None and not gang_diagnosis.unlabelled)
    assert gang_diagnosis is not None
    assert gang_diagnosis.fit == max((puzzle.most(site) for site in puzzle.sites()), default=0)
    lacking = {each.resource: each.lacking for each in gang_diagnosis.lacking}
    domain = gang_diagnosis.domain or "new"
    zone, rack = (domain if puzzle.required == key else "new" for key in (ZONE, RACK))
    more = Place("more", lacking["cpu"] // 1000, lacking.get(GPU, 0), zone, rack)
    assert decided(puzzle._replace(places=(*puzzle.places, more))).placed


@pytest.mark.parametrize(
    ("puzzle", "said"),
    [
        pytest.param(
            GangInstance(
                (Place("n0", 9, 5, "a", "r1"), Place("n1", 9, 3, "a", "r2")), (Kind(8, 1, 1),), 8, required=RACK
            ),
            "0/2 nodes are available: 5 of at least 8 members fit in topology.kubernetes.io/rack r1, which comes "
            "closest; 3 more need 3 cpu, 3 nvidia.com/gpu; "
            "more than the nodes there are would hold if they were empty.",
            id="a rack is too small",
        ),
        pytest.param(
            GangInstance((Place("n0", 2, 0, "a", ""), Place("n1", 1, 0, "a", "")), (Kind(8, 1),), 4),
            "0/2 nodes are available: 3 of at least 4 members fit in the whole cluster; 1 more needs 1 cpu; "
            "more than the nodes there are would hold if they were empty.",
            id="the cluster is too small",
        ),
        pytest.param(
            GangInstance((Place("n0", 9, 0, "", ""),), (Kind(2, 1),), 2, required=RACK),
            "0/1 nodes are available: no node has a label of the level topology.kubernetes.io/rack, "
            "which all 2 members must share.",
            id="no node is in a rack",
        ),
        pytest.param(
            GangInstance((Place("n0", 9, 0, "", ""), Place("n1", 9, 0, "", "")), (Kind(3, 1),), 3, "apart", HOSTNAME),
            "0/2 nodes are available: 2 of at least 3 members fit in the whole cluster; 1 more needs 1 cpu "
            "(at most one member for each kubernetes.io/hostname).",
            id="more members than nodes",
        ),
        pytest.param(
            GangInstance(
                (Place("n0", 9, 0, "a", ""), *(Place(z, 1, 0, z, "") for z in "bc")), (Kind(8, 1),), 8, "even"
            ),
            "0/3 nodes are available: 4 of at least 8 members fit in the whole cluster; room is missing for 2 in "
            "topology.kubernetes.io/zone b, for 1 in topology.kubernetes.io/zone c: 3 cpu "
            "(spread over topology.kubernetes.io/zone by at most 1).",
            id="room in the wrong zone",
        ),
        pytest.param(
            GangInstance(
                (Place("n0", 9, 0, "a", "r1"), Place("n1", 9, 0, "b", "")), (Kind(3, 1),), 3, "even", required=RACK
            ),
            "0/2 nodes are available: 1 of at least 3 members fit in topology.kubernetes.io/rack r1, which comes "
            "closest; more room on these nodes would not help (spread over topology.kubernetes.io/zone by at most 1).",
            id="in one rack and in all zones",
        ),
    ],
)
def test_the_sentence(puzzle: GangInstance, said: str) -> None:
    assert decided(puzzle).sentence() == said


@pytest.mark.parametrize(
    ("tainted", "cordoned", "labelled", "said"),
    [
        pytest.param(
            4,
            0,
            4,
            "0 of at least 4 members fit in the whole cluster; 4 more need 4 cpu; more than the nodes that accept "
            "members would hold if they were empty; 4 node(s) had untolerated taint(s)",
            id="all nodes have a taint",
        ),
        pytest.param(
            2,
            1,
            4,
            "1 of at least 4 members fit in the whole cluster; 3 more need 3 cpu; more than the nodes that accept "
            "members would hold if they were empty; 2 node(s) had untolerated taint(s), 1 node(s) were unschedulable",
            id="some have a taint and one is cordoned",
        ),
        pytest.param(
            0,
            0,
            1,
            "1 of at least 4 members fit in the whole cluster; 3 more need 3 cpu; more than the nodes that accept "
            "members would hold if they were empty; 3 node(s) didn't match Pod's node affinity/selector",
            id="the selector matches one node",
        ),
    ],
)
def test_nodes_that_would_refuse_members_even_if_empty_are_told_with_the_reason(
    tainted: int, cordoned: int, labelled: int, said: str
) -> None:
    nodes = [
        a_node(
            f"n{i}",
            cpu=1,
            taints=["gpu:NoSchedule"] if i < tainted else [],
            cordoned=tainted <= i < tainted + cordoned,
            labels={"kind": "good"} if i < labelled else {},
        )
        for i in range(4)
    ]
    pods = [a_pod(f"m{i}", cpu=1, selects={"kind": "good"}) for i in range(4)]
    decision = Planner(RULES).decide(Job("default/gang", tuple(pods), 4), a_ledger(nodes, []).snapshot(), 0.0)
    assert decision.sentence() == f"0/4 nodes are available: {said}."


@given(kinds=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=8))
def test_each_node_counts_for_the_first_reason_that_it_has(kinds: list[tuple[bool, bool, bool]]) -> None:
    """Amounts do not count here: every node is too small for a member."""
    naive = Counter(
        "node(s) were unschedulable"
        if cordoned
        else "node(s) had untolerated taint(s)"
        if tainted
        else "node(s) didn't match Pod's node affinity/selector"
        for cordoned, tainted, other in kinds
        if cordoned or tainted or other
    )
    nodes = [
        a_node(f"n{i}", cpu=1, taints=["gpu:NoSchedule"] * tainted, cordoned=cordoned, labels={"kind": str(other)})
        for i, (cordoned, tainted, other) in enumerate(kinds)
    ]
    pods = tuple(a_pod(f"m{i}", cpu=2, selects={"kind": "False"}) for i in range(2))
    found = Planner(RULES).decide(Job("default/gang", pods, 2), a_ledger(nodes, []).snapshot(), 0.0).gang_diagnosis
    assert found is not None
    assert dict(found.refused_nodes) == naive


@given(puzzle=puzzles())
def test_a_gang_that_is_too_large_for_ever_is_told_so(puzzle: GangInstance) -> None:
    """Others run here, too: without them it would be placed, unless it is told that it never could."""
    busy = [a_pod(f"busy-{place.name}", cpu=place.cpu, node=place.name) for place in puzzle.places]
    decision = Planner(RULES).decide(puzzle.job(), a_ledger(puzzle.nodes(), busy).snapshot(), 0.0)
    assume(puzzle.total > 1)
    assert decision.gang_diagnosis is not None
    assert decision.gang_diagnosis.exceeds_cluster == (not decided(puzzle).placed)
    if decision.gang_diagnosis.exceeds_cluster:
        assert decision.diagnosis.refused_by == (TOO_LARGE,)
