"""docs/gangs.md says what is so: the levels, and the files it points to."""

import re
from pathlib import Path

from kubenexus.api.gangs.levels import DEFAULT_LEVELS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "gangs.md").read_text()


def test_the_page_has_the_levels_in_order() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (`.*`) \|$", PAGE, re.MULTILINE)
    assert [(name, tuple(re.findall(r"`([^`]+)`", keys))) for name, keys in rows] == [
        (e.name, e.keys) for e in DEFAULT_LEVELS
    ]


def test_the_page_names_every_example() -> None:
    named = set(re.findall(r"\.\./(examples/gangs/[\w-]+\.yaml)", PAGE))
    assert named == {str(path.relative_to(ROOT)) for path in (ROOT / "examples" / "gangs").glob("*.yaml")}
