"""Short ways to write configurations and registries down."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kubenexus.config import Configuration, load, validate
from kubenexus.config.catalogue import PLANNER, SHIPPED_SET, Catalogue
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.profile import Factory
from kubenexus.framework.verdict import SKIP

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

# What each method of the contract stands for, to make plugins that have just the points they should have.
METHODS = {
    "preEnqueue": ("pre_enqueue",),
    "queueSort": ("sort_key",),
    "preFilter": ("pre_filter",),
    "filter": ("filter",),
    "score": ("score",),
    "reserve": ("assign",),
}


def _keep(self: Any, args: Any) -> None:
    self.args = args


def a_plugin(name: str, points: Iterable[str]) -> Factory:
    """A class that keeps the contract at these points and does nothing."""

    body: dict[str, Any] = {"name": name, "reads": (), "depends": Depends.NODE, "normalize": AS_IS, "__init__": _keep}
    for point in points:
        body.update(dict.fromkeys(METHODS.get(point, ()), lambda *_: SKIP))
    made: Factory = type(name, (), body)
    return made


def a_registry(**also: str) -> dict[str, Factory]:
    """Every default plugin of a shipped profile as if it were built, and `also`: names with their points."""
    known = Catalogue({}).points
    built = {
        plugin.name: a_plugin(plugin.name, known[plugin.name]) for plugin in SHIPPED_SET if plugin.name not in PLANNER
    }
    return {**built, **{name: a_plugin(name, points.split()) for name, points in also.items()}}


ALL = a_registry()


def loaded(text: str, registry: dict[str, Factory] = ALL) -> Configuration:
    """What follows the first two lines of a file, loaded."""
    return load(HEAD + text, registry)


def problems(text: str, registry: dict[str, Factory] = ALL) -> list[str]:
    return [str(problem) for problem in validate(HEAD + text, registry)]


def names(configuration: Configuration) -> list[str]:
    return [enabled.name for enabled in configuration.profiles[0].plugins]


def cases(file: str) -> list[Any]:
    """The cases of a file in `cases`: what to load, and the lines that must be reported."""
    text = (Path(__file__).parent / "cases" / f"{file}.txt").read_text(encoding="utf-8")
    return [_case(block) for block in text.split("\n=== ")[1:]]


def _case(block: str) -> Any:
    title, _, rest = block.partition("\n")
    given, _, expected = rest.partition("\n==>\n")
    return pytest.param(given, expected.strip().splitlines(), id=title)
