"""The domains of a topology level, as the gang planner, spreading and affinity see them."""

import numpy as np
import pytest

from kubenexus.state.ledger import Ledger
from kubenexus.state.topology import TopologyDomains, domain_codes, domains_of_label, domains_of_level, node_level
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import a_ledger


def racks() -> Ledger:
    labels = [{"rack": "r1", "zone": "a"}, {"rack": "r1", "zone": "b"}, {"rack": "r2", "zone": "b"}, {}]
    return a_ledger([a_node(f"n{i}", labels=each) for i, each in enumerate(labels)])


def named(level: TopologyDomains) -> list[str]:
    return [level.names[code] for code in level.codes.tolist()]


def test_a_label_gives_each_node_its_domain() -> None:
    level = domains_of_label("rack", Nodes(racks().nodes))
    assert named(level) == ["r1", "r1", "r2", ""]
    assert level.row_counts.tolist() == [1, 2, 1]


def test_all_users_share_the_domains_of_a_label_until_a_node_changes() -> None:
    ledger = racks()
    level = domains_of_label("rack", Nodes(ledger.nodes))
    assert domains_of_label("rack", Nodes(ledger.nodes)) is level
    ledger.upsert_node(a_node("n3", labels={"rack": "r3"}))
    assert named(domains_of_label("rack", Nodes(ledger.nodes))) == ["r1", "r1", "r2", "r3"]


def test_a_view_of_some_rows_has_the_codes_of_those() -> None:
    ledger = racks()
    some = Nodes(ledger.nodes, np.array([2, 3]))
    assert named(domains_of_label("rack", some)) == ["r2", ""]
    assert domain_codes("rack", some).tolist() == domain_codes("rack", Nodes(ledger.nodes)).tolist()[2:]


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        pytest.param(["rack"], ["r1", "r1", "r2", ""], id="one label"),
        pytest.param(["block", "rack"], ["r1", "r1", "r2", ""], id="the first is on no node"),
        pytest.param(["rack", "zone"], ["r1", "r1", "r2", ""], id="the first counts"),
    ],
)
def test_of_several_labels_the_first_that_a_node_has_counts(keys: list[str], found: list[str]) -> None:
    assert named(domains_of_level("rack", keys, racks().nodes)) == found


def test_domains_are_cut_where_those_of_another_level_end() -> None:
    ledger = racks()
    rack, zone = (domains_of_label(key, Nodes(ledger.nodes)) for key in ("rack", "zone"))
    assert named(rack.split_by(zone)) == ["r1 of zone a", "r1 of zone b", "r2 of zone b", " of zone "]
    assert node_level(ledger.nodes).split_by(rack).codes.tolist() == [1, 2, 3, 0]
