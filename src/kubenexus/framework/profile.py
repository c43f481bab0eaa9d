"""Profiles: the configuration as data (plugins, order, weights), and the plugins built from it, by extension point."""

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.extension_points import (
    AS_IS,
    Assign,
    Capacity,
    CombinedRule,
    Combines,
    Depends,
    Filter,
    IgnoresUsage,
    PinsNodes,
    Plugin,
    PreEnqueue,
    PreFilter,
    QueueSort,
    ReportsWork,
    Score,
    Sign,
    SignsTemplateAndPod,
    Stamped,
    implements,
)

Factory = Callable[[Mapping[str, Any]], Plugin]
MAX_WEIGHT = 1_000_000  # a sum of weighted scores has 31 bits, above those of `cycle.tie_break`
_BUILT_IN: Final[set[type[Any]]] = set()

DEFAULT_SCHEDULER: Final = "default-scheduler"  # a profile with this name stands in kube-scheduler's place


class TieBreak(enum.Enum):
    """Which node with the best score is chosen: seeded (by a stable hash of names), by name, or in use first."""

    SEEDED = "seeded"
    NAME = "name"
    IN_USE = "in-use"


class EnabledPlugin(msgspec.Struct, frozen=True):
    """A plugin of a profile. Its arguments are those of `pluginConfig`."""

    name: str
    weight: int = 1
    args: dict[str, Any] = {}


class Profile(msgspec.Struct, frozen=True):
    """The plugins of a profile, in order.

    `points` has the plugins, in order, of those extension points where they are not all of `plugins` in their order: a
    configuration may disable a plugin at one point, or order it differently there.
    """

    name: str
    plugins: tuple[EnabledPlugin, ...]
    tie_break: TieBreak = TieBreak.SEEDED
    seed: int = 0
    points: dict[str, tuple[str, ...]] = {}


class PluginTraits(NamedTuple):
    """Properties of a plugin that the runtime reads in each decision, computed once at start-up."""

    usage: bool = False
    cluster: bool = False
    job: bool = False
    supports_one_node: bool = False
    trusted: bool = False
    stamped: bool = False
    feasible: bool = False
    repaired: bool = False  # called again for the rows where a pod was placed
    quiet: bool = False  # it signed nothing for the class, so the runtime does not call it
    demand: bool = False


class Combination(NamedTuple):
    """A CombinedRule and the plugin that it is of, which is named if the rule fails."""

    plugin: Plugin
    rule: CombinedRule


class ClassPlugins(NamedTuple):
    """The plugins that the runtime calls for a class, by extension point.

    A plugin with `sign` that signed nothing for the class is left out (`extension_points.Sign`). Each of `scores` has
    the plugin, its weight, its traits, whether raw scores are used as they are, and its `default_score`.
    """

    pre_filter: list[PreFilter]
    filters: list[tuple[Filter, PluginTraits]]
    scores: list[tuple[Score, int, PluginTraits, bool, Any]]
    stamped: list[Stamped]
    stamped_filters: list[Any]  # those of `stamped` that filter, in the order of `filters`
    assigns: list[Assign]
    supports_one_node: bool  # all plugins that are called for changed rows take a `OneNode`
    foreign: bool  # some Score plugins are not built in
    depends_on_job: bool  # some of the plugins read where the job's other members are


class ProfilePlugins:
    """The plugins of a profile by extension point, in order. Built once at start-up."""

    def __init__(self, profile: Profile, factories: Mapping[str, Factory], also_reads: tuple[str, ...] = ()) -> None:
        self.profile = profile
        self._also_reads = also_reads  # pod fields that the planner reads besides the plugins
        self.plugins: list[Plugin] = []
        self.weights: dict[str, int] = {}
        for enabled in profile.plugins:
            if enabled.name not in factories:
                known = ", ".join(sorted(factories))
                raise KubeNexusError(f"profile {profile.name!r}: unknown plugin {enabled.name!r}; known: {known}")
            if enabled.name in self.weights:
                raise KubeNexusError(f"profile {profile.name!r}: plugin {enabled.name!r} is enabled twice")
            self.plugins.append(_built(enabled, factories[enabled.name], profile.name))
            self.weights[enabled.name] = enabled.weight
        self.pre_enqueue = [p for p in self._at("preEnqueue") if implements(p, PreEnqueue)]
        self.queue_sort = [p for p in self._at("queueSort") if implements(p, QueueSort)]
        self.pins = [p for p in self._at("preFilter") if implements(p, PinsNodes)]
        self.signs = [p for p in self.plugins if implements(p, Sign)]
        self.pre_filter = [p for p in self._at("preFilter") if implements(p, PreFilter)]
        self.filters = [p for p in self._at("filter") if implements(p, Filter)]
        self.scores = [p for p in self._at("score") if implements(p, Score)]
        self.per_node = len(self.filters) + len(self.scores)  # calls for each class of pods
        self.capacity = [p for p in self._at("filter") if implements(p, Capacity)]
        self.assigns = [p for p in self._at("reserve") if implements(p, Assign)]
        self.signs_without_volumes = [p for p in self.signs if not getattr(p, "volumes_only", False)]
        templates = [p for p in self.signs if getattr(p, "signs_template", False) and is_built_in(p)]
        self.signs_both = [p for p in templates if implements(p, SignsTemplateAndPod)]
        self.signs_by_template = [
            (p, p.sign_template if implements(p, SignsTemplateAndPod) else p.sign) for p in templates
        ]
        self.signs_by_pod = [p for p in self.signs if p not in templates]
        self.signs_by_pod_without_volumes = [p for p in self.signs_without_volumes if p in self.signs_by_pod]
        self.signing = {p.name for p in self.signs}
        self.depends_on_owners = any(getattr(p, "depends_on_owners", False) for p in self.plugins)
        self.stamped = [p for p in self.plugins if implements(p, Stamped)]
        self.reporting_work = [p for p in self.plugins if implements(p, ReportsWork) and is_built_in(p)]
        self.traits = {plugin.name: _traits(plugin) for plugin in self.plugins}
        # A plugin that is not built in may read a pod's name, or anything else.
        self.signs_by_content = all(self.traits[p.name].trusted for p in (*self.signs, *self.pins))
        self.combined = self._combined()
        self._ignoring = [p for p in self.plugins if implements(p, IgnoresUsage)]
        self._selected: dict[tuple[frozenset[str], frozenset[str]], ClassPlugins] = {}

    def _combined(self) -> list[Combination]:
        """Returns the CombinedRules of the plugins that have one."""
        by_name = {plugin.name: plugin for plugin in self.plugins}
        found = [(plugin, plugin.combine(by_name)) for plugin in self.plugins if implements(plugin, Combines)]
        return [Combination(plugin, rule) for plugin, rule in found if rule is not None]

    def for_class(self, signed: Mapping[str, Any]) -> ClassPlugins:
        """Returns the plugins for a class for which plugins signed this, by name."""
        still = frozenset(p.name for p in self._ignoring if p.name in signed and p.ignores_usage(signed[p.name]))
        kind = (frozenset(signed), still)
        known = self._selected.get(kind)
        if known is None:
            known = self._selected[kind] = self._select(self.signing - kind[0], still)
        return known

    def _select(self, quiet: set[str], still: frozenset[str]) -> ClassPlugins:
        own = {name: each._replace(usage=False) if name in still else each for name, each in self.traits.items()}
        traits = {name: _class_plugins(each, name in quiet) for name, each in own.items()}
        return ClassPlugins(
            [p for p in self.pre_filter if p.name not in quiet],
            [(p, _filter_traits(p, traits[p.name])) for p in self.filters if p.name not in quiet],
            [
                (p, self.weights[p.name], traits[p.name], p.normalize is AS_IS, getattr(p, "default_score", 0))
                for p in self.scores
                if p.name not in quiet or hasattr(p, "default_score")
            ],
            [p for p in self.stamped if p.name not in quiet],
            [p for p in self.filters if traits[p.name].stamped],
            [p for p in self.assigns if p.name not in quiet],
            supports_one_node=all(each.supports_one_node for each in traits.values() if each.repaired),
            foreign=any(not traits[p.name].trusted for p in self.scores),
            depends_on_job=any(each.job for each in traits.values()),
        )

    def _at(self, point: str) -> list[Plugin]:
        """Returns the plugins enabled at a point, by its name in a configuration, in their order there."""
        names = self.profile.points.get(point)
        if names is None:
            return self.plugins
        built = {plugin.name: plugin for plugin in self.plugins}
        return [built[name] for name in names]

    @property
    def reads_demand(self) -> bool:
        """Whether a plugin depends on what pods are expected to ask for."""
        return any(bool(getattr(plugin, "depends", Depends.NODE) & Depends.DEMAND) for plugin in self.plugins)

    @property
    def reads(self) -> set[str]:
        return {*self._also_reads, *(field for plugin in self.plugins for field in plugin.reads)}


def _built(enabled: EnabledPlugin, factory: Factory, profile: str) -> Plugin:
    if not 0 <= enabled.weight <= MAX_WEIGHT:
        raise KubeNexusError(f"profile {profile!r}: plugin {enabled.name!r}: weight must be 0..{MAX_WEIGHT}")
    try:
        return factory(enabled.args)
    except Exception as error:
        raise KubeNexusError(f"profile {profile!r}: plugin {enabled.name!r}: {error}") from error


def is_built_in(plugin: Plugin) -> bool:
    """Whether the plugin's class itself, and not one that it inherits from, is in the built-in table."""
    return type(plugin) in _BUILT_IN


def mark_built_in(plugin: type[Any]) -> None:
    """Record a class as built in: the runtime does not check what it returns. Called by `registry.built_in_table`."""
    _BUILT_IN.add(plugin)


def _traits(plugin: Plugin) -> PluginTraits:
    depends = getattr(plugin, "depends", Depends.NODE)
    scalar = bool(getattr(plugin, "supports_one_node", False))
    trusted = is_built_in(plugin)
    usage, cluster, job = (bool(depends & flag) for flag in (Depends.USAGE, Depends.CLUSTER, Depends.JOB))
    feasible, demand = bool(depends & Depends.FEASIBLE), bool(depends & Depends.DEMAND)
    return PluginTraits(usage, cluster, job, scalar, trusted, implements(plugin, Stamped), feasible, demand=demand)


def _filter_traits(plugin: Plugin, traits: PluginTraits) -> PluginTraits:
    """Returns the traits for the filter of a plugin, which may depend on less than its score."""
    depends = getattr(plugin, "filter_depends", None)
    if depends is None:
        return traits
    less = traits._replace(job=traits.job and bool(depends & Depends.JOB))
    return less if depends & Depends.USAGE else less._replace(usage=False, repaired=False)


def _class_plugins(traits: PluginTraits, quiet: bool) -> PluginTraits:
    """Returns the traits of a plugin for a class."""
    stamped = traits.stamped and not quiet
    repaired, job = traits.usage and not stamped and not quiet, traits.job and not quiet
    cluster, feasible = traits.cluster and not quiet, traits.feasible and not quiet
    demand = traits.demand and not quiet
    return traits._replace(
        stamped=stamped, repaired=repaired, quiet=quiet, job=job, cluster=cluster, feasible=feasible, demand=demand
    )
