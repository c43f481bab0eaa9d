"""A refused gang is told exactly what it lacks: with that much more in the domain that is named it is placed, and with
room for one member less it is not."""

import pytest
from hypothesis import assume, example, given

from kubenexus.framework.decision import Certificate, Decision
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.capacity import TOO_LARGE
from kubenexus.plugins import lineup
from kubenexus.testing.builders import GPU, HOSTNAME, ZONE, a_pod
from kubenexus.testing.harness import a_ledger
from tests.plan.gang.puzzles import RACK, Kind, Place, Puzzle, puzzles

RULES = lineup()


def decided(puzzle: Puzzle) -> Decision:
    return Planner(RULES).decide(puzzle.job(), a_ledger(puzzle.nodes(), puzzle.others()).snapshot(), 0.0)


def grown(puzzle: Puzzle, certificate: Certificate, members: int) -> Puzzle:
    """With a node more for each of so many members, in the domain that the certificate names."""
    kind, domain = puzzle.kinds[0], certificate.domain or "new"
    zone = domain if puzzle.required == ZONE else "new"
    rack = domain if puzzle.required == RACK else "new"
    more = [Place(f"more-{i}", kind.cpu, kind.gpu, zone, rack) for i in range(members)]
    return puzzle._replace(places=(*puzzle.places, *more))


@given(puzzle=puzzles())
@example(Puzzle((Place("n0", 3, 0, "a", "r1"), Place("n1", 2, 0, "a", "r2")), (Kind(4, 1),), 4, required=RACK))
def test_what_is_named_is_what_is_missing(puzzle: Puzzle) -> None:
    decision = decided(puzzle)
    assume(not decision.placed and (puzzle.total > 1 or puzzle.required))  # a pod by itself has no certificate
    certificate = decision.certificate
    assert certificate is not None
    assert not certificate.exhausted
    assert decision.code is Code.UNSCHEDULABLE
    assert certificate.fit == max((puzzle.most(site) for site in puzzle.sites()), default=0)
    assert decided(grown(puzzle, certificate, certificate.missing)).placed
    assert not decided(grown(puzzle, certificate, certificate.missing - 1)).placed


@given(puzzle=puzzles(kinds=2))
def test_a_gang_of_several_kinds_is_told_too(puzzle: Puzzle) -> None:
    puzzle = puzzle._replace(kinds=tuple(kind._replace(port=0) for kind in puzzle.kinds))
    certificate = decided(puzzle).certificate
    assume(certificate is not None)
    assert certificate is not None
    assert certificate.fit == max((puzzle.most(site) for site in puzzle.sites()), default=0)
    lacking = {each.resource: each.lacking for each in certificate.lacking}
    domain = certificate.domain or "new"
    zone, rack = (domain if puzzle.required == key else "new" for key in (ZONE, RACK))
    more = Place("more", lacking["cpu"] // 1000, lacking.get(GPU, 0), zone, rack)
    assert decided(puzzle._replace(places=(*puzzle.places, more))).placed


@pytest.mark.parametrize(
    ("puzzle", "said"),
    [
        pytest.param(
            Puzzle((Place("n0", 9, 5, "a", "r1"), Place("n1", 9, 3, "a", "r2")), (Kind(8, 1, 1),), 8, required=RACK),
            "0/2 nodes are available: 5 of at least 8 members fit in topology.kubernetes.io/rack r1, which comes "
            "closest; 3 more need 3 cpu, 3 nvidia.com/gpu; "
            "more than the nodes there are would hold if they were empty.",
            id="a rack is too small",
        ),
        pytest.param(
            Puzzle((Place("n0", 2, 0, "a", ""), Place("n1", 1, 0, "a", "")), (Kind(8, 1),), 4),
            "0/2 nodes are available: 3 of at least 4 members fit in the whole cluster; 1 more needs 1 cpu; "
            "more than the nodes there are would hold if they were empty.",
            id="the cluster is too small",
        ),
        pytest.param(
            Puzzle((Place("n0", 9, 0, "", ""),), (Kind(2, 1),), 2, required=RACK),
            "0/1 nodes are available: 0 of at least 2 members fit in any one topology.kubernetes.io/rack; "
            "2 more need 2 cpu; more than the nodes there are would hold if they were empty.",
            id="no node is in a rack",
        ),
        pytest.param(
            Puzzle((Place("n0", 9, 0, "", ""), Place("n1", 9, 0, "", "")), (Kind(3, 1),), 3, "apart", HOSTNAME),
            "0/2 nodes are available: 2 of at least 3 members fit in the whole cluster; 1 more needs 1 cpu "
            "(at most one member for each kubernetes.io/hostname).",
            id="more members than nodes",
        ),
    ],
)
def test_the_sentence(puzzle: Puzzle, said: str) -> None:
    assert decided(puzzle).sentence() == said


@given(puzzle=puzzles())
def test_a_gang_that_is_too_large_for_ever_is_told_so(puzzle: Puzzle) -> None:
    """Others run here, too: without them it would be placed, unless it is told that it never could."""
    busy = [a_pod(f"busy-{place.name}", cpu=place.cpu, node=place.name) for place in puzzle.places]
    decision = Planner(RULES).decide(puzzle.job(), a_ledger(puzzle.nodes(), busy).snapshot(), 0.0)
    assume(puzzle.total > 1)
    assert decision.certificate is not None
    assert decision.certificate.never == (not decided(puzzle).placed)
    if decision.certificate.never:
        assert decision.diagnosis.refused_by == (TOO_LARGE,)
