"""`kubenexus gangs`: what each gang has, needs and lacks, from the objects of a cluster."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kubenexus.api.gangs.levels import DEFAULT_LEVELS
from kubenexus.cli import main
from kubenexus.explain.gang_report import age_text, declared_pods, gang_documents, render_gangs
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

NAME, MIN = "pod-group.scheduling.kubenexus.io/name", "pod-group.scheduling.kubenexus.io/min-available"
DUMP = str(Path(__file__).parents[2] / "examples" / "why" / "cluster.json")
RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"


def documents(nodes: list[str], minimum: int, namespace: str = ""):
    """The gangs of a cluster with one gang, whose members are on these nodes; "" for one that waits."""
    ledger, labels = Ledger(), {NAME: "g", MIN: str(minimum)}
    for name, rack in (("n1", "r1"), ("n2", "r1"), ("n3", "r2")):
        ledger.upsert_node(a_node(name, cpu=8, labels={RACK: rack, ZONE: "a"}))
    pods = [a_pod(f"m{i}", namespace="ml", cpu=1, labels=labels, node=node) for i, node in enumerate(nodes)]
    for pod in pods:
        ledger.upsert_pod(pod)
    return gang_documents(declared_pods([*pods, a_pod("alone", namespace="ml")]), ledger, DEFAULT_LEVELS, namespace, {})


@pytest.mark.parametrize(
    ("nodes", "minimum", "state"),
    [
        pytest.param(["", ""], 3, "Forming", id="fewer pods exist than must start together"),
        pytest.param(["", "", ""], 3, "Pending", id="no member has a node"),
        pytest.param(["n1", "", ""], 2, "Degraded", id="fewer members have a node than must start together"),
        pytest.param(["n1", "n2", ""], 2, "Partial", id="enough have a node, and one waits"),
        pytest.param(["n1", "n2", "n3"], 2, "Running", id="all have a node"),
    ],
)
def test_the_state_of_a_gang(nodes: list[str], minimum: int, state: str) -> None:
    (gang,) = documents(nodes, minimum)
    assert (gang.state, gang.members, gang.minimum, gang.placed) == (state, len(nodes), minimum, sum(map(bool, nodes)))


def test_domains_are_those_of_the_members_from_the_outside_in() -> None:
    (gang,) = documents(["n1", "n3"], 2)
    assert gang.domains == {"zone": ("a",), "rack": ("r1", "r2")}
    assert "zone=a,2 racks" in render_gangs([gang], 0.0, namespaces=True, wide=True)


def test_only_the_gangs_of_the_namespace_are_listed() -> None:
    assert documents(["n1", "n2"], 2, "other") == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (119, "119s"), (120, "2m"), (7_200, "2h"), (172_800, "2d"), (-5, "0s")]
)
def test_ages_are_written_as_kubectl_writes_them(seconds: int, text: str) -> None:
    assert age_text(1_000_000_000.0 + seconds, "2001-09-09T01:46:40Z") == text
    assert age_text(0.0, "") == "<unknown>"


def test_the_command_prints_tables_json_and_yaml() -> None:
    def printed(*words: str) -> str:
        result = CliRunner().invoke(main, ["gangs", "--cluster", DUMP, *words])
        assert result.exit_code == 0, result.output
        return result.output

    assert printed("-n", "ml").split()[:7] == ["NAME", "MEMBERS", "MIN", "PLACED", "STATE", "TOPOLOGY", "AGE"]
    assert printed("-A").splitlines()[1].split()[:7] == ["ml", "llama", "4", "4", "0", "Pending", "rack"]
    assert printed("-A", "-o", "wide").splitlines()[0].endswith("WHY")
    assert json.loads(printed("-A", "-o", "json")) == yaml.safe_load(printed("-A", "-o", "yaml"))
    assert printed("-n", "empty") == "No gangs found.\n"


def test_a_gang_that_does_not_exist_is_an_error() -> None:
    result = CliRunner().invoke(main, ["gangs", "nope", "-A", "--cluster", DUMP])
    assert (result.exit_code, "no gang nope" in result.output) == (1, True)
