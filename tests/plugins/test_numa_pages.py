"""The page on NUMATopology: a valid configuration, and the reasons of the code."""

import re
from pathlib import Path

from kubenexus.config import load
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN, OWN_ORDER
from kubenexus.plugins.numa.plugin import NUMATopology
from kubenexus.plugins.numa.reasons import NO_ALIGNMENT, NO_ROOM, NOT_KEPT

PAGE = Path(__file__).parents[2] / "docs" / "plugins" / "numatopology.md"


def test_the_page_has_a_valid_configuration_and_the_reasons_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    weight = dict(OWN_ORDER)[NUMATopology]
    assert re.search(rf"^Maturity: .*On by default with weight {weight},", page, re.MULTILINE)
    for reason in (NO_ALIGNMENT, NO_ROOM, NOT_KEPT):
        assert f"`{reason.text}`" in page
    (config,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    loaded = load(config, load_plugins(BUILT_IN))
    (profile,) = loaded.profiles
    assert "NUMATopology" in [each.name for each in profile.plugins]
