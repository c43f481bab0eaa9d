"""What an installation brings along: seven packages at run time, and every package at one pinned version."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = [
    line
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def name(requirement: str) -> str:
    """The package of a requirement, as registries compare names."""
    return re.split(r"[\[<>=~!; ]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def test_the_runtime_needs_eight_packages_and_no_other() -> None:
    # One more needs an ADR that shows it saves more code than it costs memory.
    allowed = {"numpy", "msgspec", "aiohttp", "httptools", "pyyaml", "prometheus-client", "click", "cel-expr-python"}
    assert {name(each) for each in PROJECT["dependencies"]} == allowed
    assert len(PROJECT["dependencies"]) == len(allowed)


def test_uvloop_is_an_extra() -> None:
    assert [name(each) for each in PROJECT["optional-dependencies"]["fast"]] == ["uvloop"]


def test_every_package_we_name_is_pinned_to_one_version() -> None:
    assert [pin for pin in PINS if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", pin)] == []
    pinned = [name(pin) for pin in PINS]
    assert len(pinned) == len(set(pinned))
    extras = [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
    wanted = {name(each) for each in [*PROJECT["dependencies"], *extras]} - {"kubenexus"}
    assert wanted <= set(pinned)
