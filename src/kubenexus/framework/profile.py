"""A profile as data (which plugins, in which order, how heavy), and the lineup built from it."""

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.points import (
    KEEP,
    Assign,
    Depends,
    Filter,
    Joins,
    Pins,
    Plugin,
    PreEnqueue,
    Prepare,
    QueueSort,
    Room,
    Score,
    Sign,
    Stamped,
    Together,
)

Factory = Callable[[Mapping[str, Any]], Plugin]
MOST_WEIGHT = 1_000_000  # a sum of weighted scores has 31 bits, above the lot (see cycle.lots)


class TieBreak(enum.Enum):
    """Among nodes with the best score: by lot (stable, from the names), the first name, or one already in use."""

    SEEDED = "seeded"
    NAME = "name"
    IN_USE = "in-use"


class Enabled(msgspec.Struct, frozen=True):
    """A plugin of a profile. Its arguments are those of `pluginConfig`."""

    name: str
    weight: int = 1
    args: dict[str, Any] = {}


class Profile(msgspec.Struct, frozen=True):
    """`points` names the plugins, in order, at those points where they are not simply all of `plugins` in their order:
    a configuration may take a plugin from one point only, or ask it earlier there than elsewhere."""

    name: str
    plugins: tuple[Enabled, ...]
    tie_break: TieBreak = TieBreak.SEEDED
    seed: int = 0
    points: dict[str, tuple[str, ...]] = {}


class Traits(NamedTuple):
    """What the runtime needs to know of a plugin again and again, looked up once."""

    usage: bool = False
    cluster: bool = False
    job: bool = False
    scalar: bool = False
    trusted: bool = False
    stamped: bool = False
    feasible: bool = False
    repaired: bool = False  # asked again about the rows where something was placed
    quiet: bool = False  # it signed nothing for the class, and is not asked


class Cast(NamedTuple):
    """Who has anything to say about a class. A plugin that signs, and signed nothing for it, has nothing against any
    node and nothing to assign, whatever happens elsewhere; and is not asked for scores."""

    prepares: list[Prepare]
    filters: list[tuple[Filter, Traits]]
    scores: list[tuple[Score, int, Traits, bool, Any]]  # with the weight, whether raw scores are kept as they are, and
    # what they are before it is asked: if it is not, what it adds `at_rest`
    stamped: list[Stamped]
    stamped_filters: list[Any]  # those of them that filter, in the filters' order
    assigns: list[Assign]
    scalar: bool  # all of them that are asked about changed rows can look at one as plain numbers
    foreign: bool  # some of those that score are from elsewhere


class Lineup:
    """The plugins of a profile by point, in order. Built once at start-up."""

    def __init__(self, profile: Profile, factories: Mapping[str, Factory]) -> None:
        self.profile = profile
        self.plugins: list[Plugin] = []
        self.weights: dict[str, int] = {}
        named = {enabled.name for enabled in profile.plugins}
        always = [Enabled(name) for name, each in factories.items() if stands_in(each) and name not in named]
        for enabled in (*profile.plugins, *always):
            if enabled.name not in factories:
                known = ", ".join(sorted(factories))
                raise KubeNexusError(f"profile {profile.name!r}: unknown plugin {enabled.name!r}; known: {known}")
            if enabled.name in self.weights:
                raise KubeNexusError(f"profile {profile.name!r}: plugin {enabled.name!r} is enabled twice")
            self.plugins.append(_built(enabled, factories[enabled.name], profile.name))
            self.weights[enabled.name] = enabled.weight
        self.gates = [p for p in self._at("preEnqueue") if isinstance(p, PreEnqueue)]
        self.sorts = [p for p in self._at("queueSort") if isinstance(p, QueueSort)]
        self.pins = [p for p in self._at("preFilter") if isinstance(p, Pins)]
        self.signs = [p for p in self.plugins if isinstance(p, Sign)]
        self.prepares = [p for p in self._at("preFilter") if isinstance(p, Prepare)]
        self.filters = [p for p in self._at("filter") if isinstance(p, Filter)]
        self.scores = [p for p in self._at("score") if isinstance(p, Score)]
        self.rooms = [p for p in self._at("filter") if isinstance(p, Room)]
        self.assigns = [p for p in self._at("reserve") if isinstance(p, Assign)]
        self.signs_without_volumes = [p for p in self.signs if not getattr(p, "of_volumes", False)]
        self.signing = {p.name for p in self.signs}
        self.stamped = [p for p in self.plugins if isinstance(p, Stamped)]
        self.traits = {plugin.name: _traits(plugin) for plugin in self.plugins}
        self.joining: Plugin | None = None
        self.together: Together | None = None
        self._join()
        self.joined: list[str] = [] if self.together is None else [*self.together.names]
        self._casts: dict[frozenset[str], Cast] = {}

    def _join(self) -> None:
        """Find the first plugin that answers together with others of the profile."""
        by_name = {plugin.name: plugin for plugin in self.plugins}
        for plugin in self.plugins:
            if self.together is None and isinstance(plugin, Joins):
                self.joining, self.together = plugin, plugin.join(by_name)

    def cast(self, signed: Iterable[str]) -> Cast:
        """For a class that these plugins signed something for."""
        speaking = frozenset(signed)
        known = self._casts.get(speaking)
        if known is None:
            known = self._casts[speaking] = self._cast(self.signing - speaking)
        return known

    def _cast(self, quiet: set[str]) -> Cast:
        traits = {name: _as_cast(each, name in quiet) for name, each in self.traits.items()}
        return Cast(
            [p for p in self.prepares if p.name not in quiet],
            [(p, traits[p.name]) for p in self.filters if p.name not in quiet],
            [
                (p, self.weights[p.name], traits[p.name], p.normalize is KEEP, getattr(p, "at_rest", 0))
                for p in self.scores
                if p.name not in quiet or hasattr(p, "at_rest")
            ],
            [p for p in self.stamped if p.name not in quiet],
            [p for p in self.filters if traits[p.name].stamped],
            [p for p in self.assigns if p.name not in quiet],
            scalar=all(each.scalar for each in traits.values() if each.repaired),
            foreign=any(not traits[p.name].trusted for p in self.scores),
        )

    def _at(self, point: str) -> list[Plugin]:
        """Those that are on at a point, by its name in a configuration, in the order they are asked there."""
        names = self.profile.points.get(point)
        if names is None:
            return self.plugins
        built = {plugin.name: plugin for plugin in self.plugins}
        always = [name for name, plugin in built.items() if stands_in(plugin) and name not in names]
        return [built[name] for name in (*names, *always)]

    @property
    def reads(self) -> set[str]:
        return {field for plugin in self.plugins for field in plugin.reads}


def stands_in(plugin: Factory | Plugin) -> bool:
    """Whether it (class attribute `stands_in`) only refuses what the plugin of its name, which is not built yet, would
    do. Such a rule is on in every profile, at every point it has: a configuration may take kube-scheduler's plugin out,
    but pods that need it cannot run without it."""
    return bool(getattr(plugin, "stands_in", False))


def _built(enabled: Enabled, factory: Factory, profile: str) -> Plugin:
    if not 0 <= enabled.weight <= MOST_WEIGHT:
        raise KubeNexusError(f"profile {profile!r}: plugin {enabled.name!r}: weight must be 0..{MOST_WEIGHT}")
    try:
        return factory(enabled.args)
    except Exception as error:
        raise KubeNexusError(f"profile {profile!r}: plugin {enabled.name!r}: {error}") from error


def is_built_in(plugin: Plugin) -> bool:
    """Whether a plugin is ours: its answers are not checked again and again."""
    return type(plugin).__module__.startswith("kubenexus.plugins.")


def _traits(plugin: Plugin) -> Traits:
    depends = getattr(plugin, "depends", Depends.NODE)
    scalar = bool(getattr(plugin, "scalar", False))
    trusted = is_built_in(plugin)
    usage, cluster, job = (bool(depends & flag) for flag in (Depends.USAGE, Depends.CLUSTER, Depends.JOB))
    feasible = bool(depends & Depends.FEASIBLE)
    return Traits(usage, cluster, job, scalar, trusted, isinstance(plugin, Stamped), feasible)


def _as_cast(traits: Traits, quiet: bool) -> Traits:
    """Of a plugin for a class."""
    stamped = traits.stamped and not quiet
    return traits._replace(stamped=stamped, repaired=traits.usage and not stamped and not quiet, quiet=quiet)
