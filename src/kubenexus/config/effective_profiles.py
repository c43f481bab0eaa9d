"""Profiles between the file and the scheduler: the profile of the file, completed with defaults.

An `EffectiveProfile` is made for every profile, valid or not, and validation reads these. Only if there is no problem
at all, they become `framework.profile.Profile`, which the scheduler runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kubenexus.config import multi_point
from kubenexus.config.args import (
    GANGS,
    KINDS,
    NO_BOOSTS,
    NO_STARVATION,
    RESERVATION_SECONDS,
    SETTINGS,
    Args,
    CoschedulingArgs,
    KubeNexusArgs,
    NodeResourcesFitArgs,
    Starvation,
    TierBoosts,
    as_data,
    as_plugin_args,
    read_args,
)
from kubenexus.config.catalogue import PLANNER, Catalogue, default_set
from kubenexus.config.field_errors import FieldPath
from kubenexus.config.v1 import (
    MULTI_POINT,
    POINTS,
    SCHEDULER,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    Plugin,
    PluginConfig,
    PluginSet,
)
from kubenexus.framework.profile import DEFAULT_SCHEDULER, EnabledPlugin, Profile, TieBreak


class EffectiveProfile(msgspec.Struct, frozen=True):
    """A profile with defaults. `plugins` is the merged set of `multiPoint`; `points` has the plugins of each point, in
    order; `args` are by name and complete: those of the file, and the defaults of all plugins that have some."""

    name: str
    given: KubeSchedulerProfile
    plugins: list[Plugin]
    points: dict[str, list[str]]
    args: dict[str, Args | dict[str, Any]]

    @property
    def names(self) -> list[str]:
        """Every plugin that is on at some point: in the order of the set, then those that are on at single points
        only."""
        on = dict.fromkeys(name for names in self.points.values() for name in names)
        ordered = [plugin.name for plugin in self.plugins if plugin.name in on]
        return list(dict.fromkeys([*ordered, *on]))

    @property
    def sorts(self) -> list[str]:
        """The plugins that order the queue. A planner's name does so if no other plugin does, and then means
        PrioritySort: the queue holds jobs, so this order keeps gangs together."""
        names = self.points["queueSort"]
        return [name for name in names if name not in PLANNER] or names[:1]

    @property
    def weights(self) -> dict[str, int]:
        return multi_point.weights(self.plugins, self.given.plugins.score)

    @property
    def settings(self) -> KubeNexusArgs:
        """Our settings, with what depends on the profile decided: one that packs also breaks ties in favour of nodes in
        use, and one with kube-scheduler's name has its order."""
        fit, ours = self.args.get("NodeResourcesFit"), self.args.get(SETTINGS)
        given = ours if isinstance(ours, KubeNexusArgs) else KubeNexusArgs()
        packs = isinstance(fit, NodeResourcesFitArgs) and fit.scoring_strategy.type == "MostAllocated"
        usual = TieBreak.IN_USE if packs else TieBreak.SEEDED
        boosts = NO_BOOSTS if self.name == DEFAULT_SCHEDULER else TierBoosts()
        return msgspec.structs.replace(
            given, tie_break=given.tie_break or usual.value, tier_boosts=given.tier_boosts or boosts
        )

    @property
    def gangs(self) -> CoschedulingArgs | None:
        """The settings of gangs, with what depends on the profile decided, too; None if the profile plans no gangs."""
        given, upstream = self.args.get(GANGS), self.name == DEFAULT_SCHEDULER
        if not isinstance(given, CoschedulingArgs):
            return None
        starvation = NO_STARVATION if upstream else Starvation()
        seconds = 0 if upstream else RESERVATION_SECONDS
        return msgspec.structs.replace(
            given,
            starvation=given.starvation or starvation,
            reservation_seconds=seconds if given.reservation_seconds is None else given.reservation_seconds,
        )


def effective_profiles(
    document: KubeSchedulerConfiguration, catalogue: Catalogue, place: FieldPath
) -> list[EffectiveProfile]:
    """Returns one for each profile, and reports mismatches in arguments. A file without profiles has the shipped
    one."""
    profiles = document.profiles or [KubeSchedulerProfile()]
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = [msgspec.structs.replace(profiles[0], scheduler_name=SCHEDULER)]
    return [_draft(profile, catalogue, place["profiles"][index]) for index, profile in enumerate(profiles)]


def _draft(profile: KubeSchedulerProfile, catalogue: Catalogue, place: FieldPath) -> EffectiveProfile:
    name, said = profile.scheduler_name or "", profile.plugins
    plugins = multi_point.merge_plugin_set(default_set(name), said.multi_point)
    points = {point: multi_point.expand_at_point(plugins, said.at(point), catalogue.able(point)) for point in POINTS}
    args: dict[str, Args | dict[str, Any]] = {}
    for index, config in enumerate(profile.plugin_config):
        args.setdefault(config.name, read_args(config, place["pluginConfig"][index]))
    draft = EffectiveProfile(name, profile, plugins, points, args)
    for missing in sorted(KINDS.keys() & set(draft.names)):
        args.setdefault(missing, KINDS[missing]())
    args[SETTINGS] = draft.settings
    if draft.gangs is not None:
        args[GANGS] = draft.gangs
    return draft


def to_profile(draft: EffectiveProfile, catalogue: Catalogue) -> Profile:
    """Returns the profile that the scheduler runs: only plugins that are built, and `points` only where they differ."""
    sorts = [name if name in catalogue.factories else "PrioritySort" for name in draft.sorts]
    names = dict.fromkeys([*(name for name in sorts if name not in draft.names), *draft.names])
    built = [name for name in names if name in catalogue.factories]
    settings, weights = draft.settings, draft.weights
    return Profile(
        name=draft.name,
        plugins=tuple(EnabledPlugin(n, weights.get(n, 1), as_plugin_args(draft.args.get(n, {}))) for n in built),
        tie_break=TieBreak(settings.tie_break),
        seed=settings.seed,
        points=_differing({**draft.points, "queueSort": sorts}, built, catalogue),
    )


def _differing(
    points: Mapping[str, Sequence[str]], built: Sequence[str], catalogue: Catalogue
) -> dict[str, tuple[str, ...]]:
    found = {}
    for point, names in points.items():
        here = tuple(name for name in names if name in built)
        if here != tuple(name for name in built if catalogue.extends(name, point)):
            found[point] = here
    return found


def with_defaults(document: KubeSchedulerConfiguration, settled: list[EffectiveProfile]) -> KubeSchedulerConfiguration:
    """Returns the document with all defaults, as `config defaults` prints it. Loading it again changes nothing."""
    contention = document.enable_contention_profiling
    return msgspec.structs.replace(
        document,
        enable_contention_profiling=document.enable_profiling if contention is None else contention,
        profiles=[_completed(draft) for draft in settled],
    )


def _completed(draft: EffectiveProfile) -> KubeSchedulerProfile:
    multi = PluginSet(enabled=draft.plugins, disabled=draft.given.plugins.at(MULTI_POINT).disabled)
    return msgspec.structs.replace(
        draft.given,
        scheduler_name=draft.name,
        plugins=msgspec.structs.replace(draft.given.plugins, multi_point=multi),
        plugin_config=[PluginConfig(name=name, args=as_data(args)) for name, args in draft.args.items()],
    )
