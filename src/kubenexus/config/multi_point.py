"""From `enabled` and `disabled` to who is asked where: kube-scheduler's rules for `multiPoint`, and nothing else.

Two steps, as upstream:

1. The profile's `multiPoint` changes the default set. `disabled` takes plugins out (`*`: all); `enabled` replaces a
   default plugin at its place in the order, or comes after the defaults. So what is both disabled and enabled is on,
   at the end.
2. That set is spread over the points each plugin has. At a point, `disabled` keeps plugins of the set away; `enabled`
   puts plugins there whatever else is said. Those that the set would have put there anyway come first (that is how to
   ask a default plugin earlier), then the rest of the set, then the others.
"""

from collections.abc import Collection, Iterable

from kubenexus.config.v1 import Plugin, PluginSet

EVERYTHING = "*"


def merge_plugin_set(defaults: Iterable[Plugin], custom: PluginSet) -> list[Plugin]:
    """The default set as changed by a profile's `multiPoint`."""
    off = {plugin.name for plugin in custom.disabled}
    kept = [] if EVERYTHING in off else [plugin for plugin in defaults if plugin.name not in off]
    given = {plugin.name: plugin for plugin in custom.enabled}
    names = {plugin.name for plugin in kept}
    return [*(given.get(plugin.name, plugin) for plugin in kept), *(p for p in given.values() if p.name not in names)]


def expand_at_point(plugins: Iterable[Plugin], here: PluginSet, able: Collection[str]) -> list[str]:
    """The names at one point, in order. `plugins` is the merged set, `here` what the profile says of this point, `able`
    all that have it."""
    named = list(dict.fromkeys(plugin.name for plugin in here.enabled))
    off = {plugin.name for plugin in here.disabled}
    if EVERYTHING in off:
        return named
    there = {plugin.name: None for plugin in plugins if plugin.name in able and plugin.name not in off}
    earlier = [name for name in named if name in there]
    return [*earlier, *(name for name in there if name not in named), *(name for name in named if name not in there)]


def weights(plugins: Iterable[Plugin], score: PluginSet) -> dict[str, int]:
    """By name. What is said at `score` goes before what is said at `multiPoint`, even if it says nothing: then 1."""
    found: dict[str, int] = {}
    for plugin in (*score.enabled, *plugins):
        found.setdefault(plugin.name, plugin.weight or 1)
    return found
