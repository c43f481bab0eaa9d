"""The pages on fabrics and zones: valid configurations, and the reasons, weights and numbers of the code."""

import re

import pytest

from kubenexus.plugins.network_fabric.plugin import NO_FABRIC, fabric_points
from kubenexus.plugins.topology_scoring.own_pods import RACK_WEIGHT, REGION_WEIGHT, ZONE_WEIGHT
from tests.plugins.plugin_pages import check_page, text_of

NAMES = ["NetworkFabricScore", "TopologyScoring"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_its_maturity_its_weight_and_a_valid_configuration(name: str) -> None:
    check_page(name)


def test_the_page_on_fabrics_has_the_reason_and_the_points_of_the_code() -> None:
    page = text_of("NetworkFabricScore")
    assert f"`{NO_FABRIC.text}`" in page
    rows = re.findall(r"^\| ([a-z ]+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert len(rows) == 6
    for word, *points in rows:
        fabric = "" if word == "not known" else word
        assert [*map(int, points)] == [fabric_points(fabric, kind) for kind in ("", "training", "inference")]


def test_the_page_on_zones_has_the_weights_of_the_code() -> None:
    page = text_of("TopologyScoring")
    assert f"{ZONE_WEIGHT} for each own pod in its zone, {REGION_WEIGHT} for each in its region" in page
    assert f"{RACK_WEIGHT} for each in its rack" in page
