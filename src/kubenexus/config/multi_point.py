"""Resolves `enabled` and `disabled` into the plugins of each extension point, by kube-scheduler's rules for
`multiPoint`.

Two steps, as upstream:

1. The profile's `multiPoint` changes the default set. `disabled` removes plugins (`*`: all); `enabled` replaces a
default plugin at its place in the order, or comes after the defaults. So a plugin that is both disabled and enabled is
on, at the end.

2. That set is spread over the points of each plugin. At a point, `disabled` removes plugins of the set; `enabled` adds
plugins in any case. Those of the set come first (so a default plugin can be called earlier), then the rest of the set,
then the others.
"""

from collections.abc import Collection, Iterable

from kubenexus.config.v1 import Plugin, PluginSet

EVERYTHING = "*"


def merge_plugin_set(defaults: Iterable[Plugin], custom: PluginSet) -> list[Plugin]:
    """Returns the default set as changed by a profile's `multiPoint`."""
    off = {plugin.name for plugin in custom.disabled}
    kept = [] if EVERYTHING in off else [plugin for plugin in defaults if plugin.name not in off]
    given = {plugin.name: plugin for plugin in custom.enabled}
    names = {plugin.name for plugin in kept}
    return [*(given.get(plugin.name, plugin) for plugin in kept), *(p for p in given.values() if p.name not in names)]


def expand_at_point(plugins: Iterable[Plugin], here: PluginSet, able: Collection[str]) -> list[str]:
    """Returns the names at one point, in order. `plugins` is the merged set, `here` the profile's set for this point,
    `able` all plugins that have the point."""
    named = list(dict.fromkeys(plugin.name for plugin in here.enabled))
    off = {plugin.name for plugin in here.disabled}
    if EVERYTHING in off:
        return named
    there = {plugin.name: None for plugin in plugins if plugin.name in able and plugin.name not in off}
    earlier = [name for name in named if name in there]
    return [*earlier, *(name for name in there if name not in named), *(name for name in named if name not in there)]


def weights(plugins: Iterable[Plugin], score: PluginSet) -> dict[str, int]:
    """Returns weights by name. An entry at `score` has precedence over `multiPoint`, even without a weight: then 1."""
    found: dict[str, int] = {}
    for plugin in (*score.enabled, *plugins):
        found.setdefault(plugin.name, plugin.weight or 1)
    return found
