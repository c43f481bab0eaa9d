"""Classes with hundreds of constraints or resources: what is done for them is counted, and grows no faster than their
number."""

import tracemalloc

import pytest

from kubenexus.api.core import Pod, PodSpec, TopologySpreadConstraint
from kubenexus.api.selectors import LabelSelector
from kubenexus.base.arrays import BoolColumn
from kubenexus.framework import pod_limits
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.plugins.pod_topology_spread import constraints
from kubenexus.plugins.pod_topology_spread.constraints import ParsedConstraint
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import ZONE, a_node, a_pod
from kubenexus.testing.fuzz.call_counting import counted
from kubenexus.testing.harness import a_ledger, run

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
WEB = LabelSelector(match_labels={"app": "web"})


def spreading(number: int, when: str, key: str = "key-{}") -> Pod:
    several = [
        TopologySpreadConstraint(topology_key=key.format(i), when_unsatisfiable=when, label_selector=WEB)
        for i in range(number)
    ]
    return a_pod("large", labels={"app": "web"}, topology_spread_constraints=several)


def a_cluster(nodes: int, keys: int) -> Ledger:
    """Each node has all of the keys."""
    return a_ledger([a_node(f"n{i}", labels={f"key-{k}": f"v{i % 3}" for k in range(keys)}) for i in range(nodes)])


@pytest.fixture
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """To see what the work itself is, and not that it is refused."""
    monkeypatch.setattr(pod_limits, "BUDGET", 10**15)


@pytest.mark.usefixtures("no_limit")
@pytest.mark.parametrize("when", [HARD, SOFT])
@pytest.mark.parametrize("number", [260, 1_000, 5_000])
def test_keys_that_no_node_has_are_never_read(number: int, when: str) -> None:
    ledger = a_cluster(5, keys=0)
    ledger.nodes.labels.reads = 0
    decision = Planner(profile_plugins()).decide(Job.of(spreading(number, when)), ledger.snapshot(), 0.0)
    assert decision.placed == (when == SOFT)
    assert ledger.nodes.labels.reads <= 2, "hostname and zone, for other rules"


@pytest.mark.usefixtures("no_limit")
@pytest.mark.parametrize("when", [HARD, SOFT])
@pytest.mark.parametrize("number", [260, 1_000])
def test_each_key_that_nodes_have_is_read_once(number: int, when: str) -> None:
    ledger = a_cluster(5, keys=number)
    ledger.nodes.labels.reads = 0
    assert Planner(profile_plugins()).decide(Job.of(spreading(number, when)), ledger.snapshot(), 0.0).placed
    assert ledger.nodes.labels.reads <= number + 2


@pytest.mark.usefixtures("no_limit")
@pytest.mark.parametrize("when", [HARD, SOFT])
def test_constraints_cost_in_proportion_to_their_number(when: str) -> None:
    calls = []
    for number in (100, 400):
        ledger, pod = a_cluster(20, keys=3), spreading(number, when, "key-0")
        decide = Planner(profile_plugins()).decide
        decision, made = counted(lambda: decide(Job.of(pod), ledger.snapshot(), 0.0), 0)  # noqa: B023
        assert decision.placed
        calls.append(made)
    assert calls[1] < 5 * calls[0]


def test_which_nodes_count_is_worked_out_once_for_all_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, admitted = list[ParsedConstraint](), constraints.eligible_rows

    def watched(constraint: ParsedConstraint, spec: PodSpec, nodes: Nodes) -> BoolColumn:
        asked.append(constraint)
        return admitted(constraint, spec, nodes)

    monkeypatch.setattr(constraints, "eligible_rows", watched)
    ledger, planner = a_cluster(5, keys=100), Planner(profile_plugins())
    assert planner.decide(Job.of(spreading(100, HARD)), ledger.snapshot(), 0.0).placed
    assert len(asked) == 1


@pytest.mark.parametrize("keys", [0, 3], ids=["labels that no node has", "labels that some nodes have"])
@pytest.mark.parametrize("number", [64, 65, 100])
def test_a_pod_with_more_soft_constraints_than_numpy_has_dimensions_is_placed(number: int, keys: int) -> None:
    nodes = [a_node(f"n{i}", labels={f"key-{k}": f"v{i}" for k in range(keys)}) for i in range(3)]
    assert run(nodes, [spreading(number, SOFT)]).placements


def test_soft_constraints_beyond_numpys_dimensions_still_spread() -> None:
    """Those whose label no node has say nothing; the first still counts."""
    nodes = [a_node(f"n{i}", labels={ZONE: f"z{i}"}) for i in range(2)]
    several = [
        TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SOFT, label_selector=WEB) for _ in range(70)
    ]
    pods = [a_pod(f"p{i}", labels={"app": "web"}, topology_spread_constraints=several) for i in range(4)]
    found = run(nodes, pods).placements
    assert sorted(found.values()) == ["n0", "n0", "n1", "n1"]


@pytest.mark.usefixtures("no_limit")
def test_thousands_of_resources_that_no_node_offers_take_no_memory_on_every_node() -> None:
    """A table of them would take 46 bytes a resource and node: 44 MB here."""
    ledger, planner = a_cluster(100, keys=0), Planner(profile_plugins())
    pod = a_pod("large", requests={f"e.co/r{i}": 1 for i in range(9_500)})
    planner.decide(Job.of(a_pod("first")), ledger.snapshot(), 0.0)
    tracemalloc.start()
    try:
        decision = planner.decide(Job.of(pod), ledger.snapshot(), 0.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not decision.placed
    assert peak < 16 << 20
