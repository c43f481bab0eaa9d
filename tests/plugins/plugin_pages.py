"""What each page on a plugin has: docs/plugins/<name>.md."""

import re
from pathlib import Path

from kubenexus.config import load
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN, OWN_ORDER

PAGES = Path(__file__).parents[2] / "docs" / "plugins"


def text_of(name: str) -> str:
    return (PAGES / f"{name.lower()}.md").read_text(encoding="utf-8")


def check_page(name: str) -> None:
    """Maturity, weight, and a configuration that is valid."""
    page = text_of(name)
    (weight,) = [weight for plugin, weight in OWN_ORDER if plugin.name == name]
    assert re.search(r"^Maturity: ", page, re.MULTILINE)
    assert f"On by default with weight {weight}," in page
    (config,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    load(config, load_plugins(BUILT_IN))
