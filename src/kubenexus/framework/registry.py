"""Plugins by name: the built-in table, and the entry points of other packages in the group `kubenexus.plugins`.

The registry checks a plugin when it loads it. So a wrong signature is an error at start-up that names the plugin, not a
failure in the middle of a decision.
"""

import inspect
from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.cluster_events import ClusterEventWithHint
from kubenexus.framework.extension_points import Depends, Normalize
from kubenexus.framework.profile import Factory, mark_built_in

GROUP = "kubenexus.plugins"

# For each point: how many arguments its method takes besides self, and the class attributes that it needs.
_POINTS: dict[str, tuple[int, dict[str, type]]] = {
    "pre_enqueue": (1, {}),
    "sort_key": (2, {}),
    "node_names": (1, {}),
    "pre_filter": (2, {}),
    "filter": (3, {"depends": Depends}),
    "score": (3, {"depends": Depends, "normalize": Normalize}),
    "capacity": (3, {}),
    "assign": (3, {}),
}

# The same for methods that are no extension point by themselves.
_MORE: dict[str, int] = {"sign": 2, "stamp": 3, "touched_rows": 4, "member_constraints": 3, "amounts": 1, "combine": 1}

# Names of the first contract. A plugin that still uses one would be ignored in silence.
_RENAMED: Final = {
    "gate": "pre_enqueue",
    "order": "sort_key",
    "pins": "node_names",
    "prepare": "pre_filter",
    "room": "capacity",
    "touched": "touched_rows",
    "bonds": "member_constraints",
    "wakes": "events_to_register",
    "scalar": "supports_one_node",
    "join": "combine",
    "at_rest": "default_score",
    "of_volumes": "volumes_only",
}


def built_in_table(plugins: Collection[type[Any]]) -> dict[str, Factory]:
    """Returns the built-in plugins by name, and marks them as such.

    The runtime trusts the results of these classes. All others are checked: plugins that `load_plugins` adds, and
    classes that inherit from a built-in one.
    """
    for plugin in plugins:
        mark_built_in(plugin)
    return {plugin.name: plugin for plugin in plugins}


def load_plugins(built_in: Mapping[str, Factory]) -> dict[str, Factory]:
    """Returns the built-in plugins and those of installed packages, by name. Raises if two have the same name."""
    factories = dict(built_in)
    for point in entry_points(group=GROUP):
        factory = _load(point)
        if point.name in factories:
            raise KubeNexusError(f"plugin {point.name!r} ({point.value}): the name is taken")
        factories[point.name] = factory
    return factories


def _load(point: EntryPoint) -> Factory:
    try:
        plugin = point.load()
    except Exception as error:
        raise KubeNexusError(f"plugin {point.name!r} ({point.value}): cannot be loaded: {error}") from error
    check_plugin(point.name, plugin)
    factory: Factory = plugin
    return factory


def check_plugin(name: str, plugin: object) -> None:
    """Raises KubeNexusError unless `plugin` is a class that keeps the contract of `framework.extension_points`."""

    def fail(problem: str) -> None:
        raise KubeNexusError(f"plugin {name!r}: {problem}")

    if not inspect.isclass(plugin):
        fail("must be a class")
    if getattr(plugin, "name", None) != name:
        fail(f"its `name` must be {name!r}, is {getattr(plugin, 'name', None)!r}")
    if not isinstance(getattr(plugin, "reads", None), tuple):
        fail("`reads` must be a tuple of pod fields (empty if it reads none)")
    for old in (each for each in _RENAMED if hasattr(plugin, each) and not hasattr(plugin, _RENAMED[each])):
        fail(f"`{old}` is now called `{_RENAMED[old]}`")
    points = [point for point in _POINTS if callable(getattr(plugin, point, None))]
    if not points and not callable(getattr(plugin, "sign", None)):
        fail(f"implements none of {', '.join(_POINTS)}, sign")
    for point in (*points, *[each for each in _MORE if callable(getattr(plugin, each, None))]):
        arguments, attributes = _POINTS[point] if point in _POINTS else (_MORE[point], {})
        try:
            inspect.signature(getattr(plugin, point)).bind(None, *range(arguments))
        except TypeError:
            fail(f"`{point}` must take {arguments} arguments besides self")
        for attribute, kind in attributes.items():
            if not isinstance(getattr(plugin, attribute, None), kind):
                fail(f"`{point}` needs the class attribute `{attribute}`, a {kind.__name__}")
    events = getattr(plugin, "events_to_register", ())
    if not isinstance(events, (tuple, list)) or not all(isinstance(each, ClusterEventWithHint) for each in events):
        fail("`events_to_register` must be a tuple of ClusterEventWithHint")
