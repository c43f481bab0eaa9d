"""The pages on devices: valid configurations, readable manifests, and the reasons and numbers of the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubenexus.config import load
from kubenexus.framework.registry import load_plugins
from kubenexus.framework.verdict import Reason
from kubenexus.plugins import BUILT_IN, OWN_ORDER
from kubenexus.plugins.devices import fit, fragmentation, topology, vram

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"devicefit": fit, "vramscheduler": vram, "gputopology": topology, "resourcefragmentationscore": fragmentation}


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_how_mature_its_plugin_is_and_has_a_valid_configuration(name: str) -> None:
    page = DOCS / "plugins" / f"{name}.md"
    assert re.search(r"^Maturity: ", page.read_text(encoding="utf-8"), re.MULTILINE)
    (config,) = blocks(page)
    load(config, load_plugins(BUILT_IN))


@pytest.mark.parametrize(("name", "module"), PAGES.items())
def test_a_page_has_the_reasons_of_its_plugin(name: str, module: Any) -> None:
    page = (DOCS / "plugins" / f"{name}.md").read_text(encoding="utf-8")
    reasons = [each.text for each in vars(module).values() if isinstance(each, Reason)]
    assert reasons
    assert [text for text in reasons if f"`{text}`" not in page] == []


def test_the_thresholds_are_those_of_the_code() -> None:
    page = (DOCS / "plugins" / "vramscheduler.md").read_text(encoding="utf-8")
    rows = {
        row[0]: tuple(map(int, re.findall(r"(\d+) %", row[1])))
        for row in re.findall(r"^\| (\w+) \| (from.*)$", page, re.M)
    }
    assert rows == vram.THRESHOLDS


def test_all_manifests_of_the_page_on_devices_can_be_read() -> None:
    kinds = [each["kind"] for block in blocks(DOCS / "devices.md") for each in yaml.safe_load_all(block)]
    assert kinds == ["Pod", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]


def test_the_pages_have_the_weights_that_ship() -> None:
    overview = (DOCS / "devices.md").read_text(encoding="utf-8")
    scored = [each for each in OWN_ORDER if each[0].name.lower() in PAGES and each[0].name != fit.DeviceFit.name]
    for plugin, weight in scored:
        page = f"plugins/{plugin.name.lower()}.md"
        assert f"| [{plugin.name}]({page}) | {weight} |" in overview
        assert f"On by default with weight {weight}," in (DOCS / page).read_text(encoding="utf-8")
