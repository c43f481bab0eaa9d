"""Validates profiles: plugins must exist and have the points; one queue order for all; at least one bind plugin.

kube-scheduler finds these mistakes one by one while it starts. Here they are reported together, before anything starts.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubenexus.api.selectors import quote
from kubenexus.base.errors import truncated
from kubenexus.config import validate_args
from kubenexus.config.args import GANGS, KINDS, SETTINGS, Args, as_data, as_plugin_args
from kubenexus.config.catalogue import PLANNER, REMOVED, Catalogue
from kubenexus.config.effective_profiles import EffectiveProfile
from kubenexus.config.field_errors import FieldPath
from kubenexus.config.multi_point import EVERYTHING
from kubenexus.config.v1 import MULTI_POINT, POINTS, VERSION, Plugin
from kubenexus.config.validate_document import check_percentage, remark_percentage

_MAX_TOTAL: Final = 2**31 - 1  # of all scores of a node: a rank has 32 bits for it


def validate(drafts: Sequence[EffectiveProfile], catalogue: Catalogue, place: FieldPath) -> None:
    """Reports all problems of the profiles; `place` is the list of them."""
    seen: dict[str, int] = {}
    for index, draft in enumerate(drafts):
        here = place[index]
        if not draft.name:
            here["schedulerName"].required()
        elif draft.name in seen:
            here["schedulerName"].duplicate(place[seen[draft.name]]["schedulerName"].path)
        seen[draft.name] = index
        check_percentage(draft.given.percentage_of_nodes_to_score, here["percentageOfNodesToScore"])
        for point in (MULTI_POINT, *POINTS):
            _enabled(draft.given.plugins.at(point).enabled, point, catalogue, here["plugins"][point]["enabled"])
        _points(draft, here["plugins"])
        _arguments(draft, catalogue, here)
        _same_order(drafts[0], draft, here)


def _enabled(plugins: Sequence[Plugin], point: str, catalogue: Catalogue, place: FieldPath) -> None:
    seen = set()
    for index, plugin in enumerate(plugins):
        _name(plugin.name, point, catalogue, place[index])
        if plugin.weight is not None and plugin.weight < 0:
            place[index]["weight"].invalid(plugin.weight, "must be greater than or equal to 0")
        if plugin.name in seen:
            place[index]["name"].duplicate(plugin.name)
        seen.add(plugin.name)


def _name(name: str, point: str, catalogue: Catalogue, place: FieldPath) -> None:
    here = place["name"]
    if not name:
        here.required()
    elif name in REMOVED:
        place.invalid(name, f'was invalid in version "{VERSION}" (KubeSchedulerConfiguration is version "{VERSION}")')
    elif name == SETTINGS:
        here.invalid(name, "holds settings (in pluginConfig) and is no plugin")
    elif name not in catalogue:
        here.invalid(name, f"plugin does not exist{here.hint(name, catalogue.points)}")
    elif point != MULTI_POINT and not catalogue.extends(name, point):
        has = ", ".join(each for each in POINTS if catalogue.extends(name, each))
        here.invalid(name, f"plugin does not extend {point}; it extends {has or 'nothing'}")


def _points(draft: EffectiveProfile, place: FieldPath) -> None:
    """Checks the plugins of each point, after all sets have been spread over the points."""
    if len(draft.sorts) != 1:
        names = f" ({', '.join(map(truncated, draft.sorts))})" if draft.sorts else ""
        place["queueSort"].report(f"only one queue sort plugin required, but got {len(draft.sorts)}{names}")
    if not draft.points["bind"]:
        place["bind"].report("at least one bind plugin is needed")
    if len(draft.points["placementGenerate"]) > 1:
        place["placementGenerate"].report("at most one placement generate plugin is allowed")
    if sum(draft.weights.get(name, 1) for name in draft.points["score"]) * 100 > _MAX_TOTAL:
        place["score"].report("total score of Score plugins could overflow")


def _arguments(draft: EffectiveProfile, catalogue: Catalogue, place: FieldPath) -> None:
    seen = set()
    for index, config in enumerate(draft.given.plugin_config):
        here, name = place["pluginConfig"][index], config.name
        if name in seen:
            here.duplicate(name)
        elif isinstance(args := draft.args[name], Args):
            validate_args.validate(args, here["args"])
        else:
            _name(name, MULTI_POINT, catalogue, here)
        seen.add(name)
    for name in draft.names:
        if name in catalogue.factories and name not in KINDS:
            _constructible(name, draft, catalogue, place)


def _constructible(name: str, draft: EffectiveProfile, catalogue: Catalogue, place: FieldPath) -> None:
    """Constructs a plugin of another package, which validates its arguments itself."""
    given = [index for index, config in enumerate(draft.given.plugin_config) if config.name == name]
    try:
        catalogue.factories[name](as_plugin_args(draft.args.get(name, {})))
    except Exception as error:  # another package may raise any exception
        here = place["pluginConfig"][given[0]]["args"] if given else place["plugins"]
        here.report(f"plugin {quote(name)} refuses its arguments: {truncated(str(error))}")


def _same_order(first: EffectiveProfile, draft: EffectiveProfile, place: FieldPath) -> None:
    """Checks that all profiles have the same queue order: there is one queue."""
    ours, theirs = draft.given.plugins.queue_sort, first.given.plugins.queue_sort
    if ours != theirs:
        place["plugins"]["queueSort"].invalid(as_data(ours), "must be the same for all profiles")
    elif draft.sorts != first.sorts and draft.sorts and first.sorts:
        place["plugins"]["queueSort"].invalid(draft.sorts[0], "must be the same for all profiles")
    elif any(draft.args.get(name) != first.args.get(name) for name in draft.sorts if name not in PLANNER):
        place["pluginConfig"].report("arguments of the queueSort plugin must be the same for all profiles")


def warn(drafts: Sequence[EffectiveProfile], catalogue: Catalogue, place: FieldPath) -> None:
    """Notes settings that are accepted and have no effect: plugins not built yet, disabled names that do not exist."""
    for index, draft in enumerate(drafts):
        here = place[index]
        remark_percentage(draft.given.percentage_of_nodes_to_score, here["percentageOfNodesToScore"])
        missing = [name for name in draft.names if not catalogue.is_built(name)]
        if missing:
            here["plugins"].report(f"not built yet: {', '.join(missing)}")
        for point in (MULTI_POINT, *POINTS):
            _disabled(draft.given.plugins.at(point).disabled, catalogue, here["plugins"][point]["disabled"])
        for number, config in enumerate(draft.given.plugin_config):
            if config.args:
                _unread(draft, config.name, catalogue, here["pluginConfig"][number]["args"])
                _elsewhere(config.args, config.name, here["pluginConfig"][number]["args"])


def _unread(draft: EffectiveProfile, name: str, catalogue: Catalogue, place: FieldPath) -> None:
    if name in PLANNER and name not in catalogue.factories and name not in KINDS:
        place.report("are kept for the planner, which does not read them yet")
    elif catalogue.takes_no_args(name):
        place.report(f"have no effect: {name} takes none")
    elif name not in draft.names and name not in (*PLANNER, SETTINGS) and catalogue.is_built(name):
        place.report(f"have no effect: {name} is not enabled in this profile")


def _elsewhere(args: Mapping[str, Any], name: str, place: FieldPath) -> None:
    """Notes arguments for schedulers that place a gang pod by pod, with a timeout."""
    for field in ("permitWaitingTimeSeconds", "podGroupBackoffSeconds", "kubeflowAutoGang"):
        if name == GANGS and args.get(field) is not None:
            place[field].report("has no effect: a gang is planned as a whole")


def _disabled(plugins: Sequence[Plugin], catalogue: Catalogue, place: FieldPath) -> None:
    for index, plugin in enumerate(plugins):
        there = place[index]["name"]
        if plugin.name != EVERYTHING and plugin.name not in catalogue:
            there.report(
                f"disables {quote(plugin.name)}, which does not exist{there.hint(plugin.name, catalogue.points)}"
            )
