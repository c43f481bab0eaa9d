"""The columns of a class that a placement changes, on the row where it happened."""

from collections.abc import Sequence
from typing import Any

import msgspec

from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.cycle.scores.column import ScoreColumn
from kubenexus.framework.extension_points import RowRefusals
from kubenexus.framework.plugin_results import FAILURES, plugin_error
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.profile import Combination
from kubenexus.state.view import Nodes, OneNode


class ColumnGroup(msgspec.Struct, gc=False, eq=False):
    """The columns that one CombinedRule covers, or those that none covers. `places` says where the rule returns each of
    the scores; None: in their order."""

    filters: list[FilterColumn]
    scores: list[ScoreColumn]
    combined: Combination | None = None
    places: list[int] | None = None

    def ask(self, pod: PodClass, view: Nodes) -> Sequence[Any] | RowRefusals | None:
        """Returns what the rule computes for these rows: the raw score of each column, and no filter refuses a row; or
        the reasons against a single row. None: the plugins are to be called one by one.

        A mixed decision takes 0.75 of the time, a warm one 0.8, a cold one 0.9 (docs/adr/0009).
        """
        combined, places = self.combined, self.places
        if combined is None:
            return None
        try:
            found = combined.rule.row(pod, view) if isinstance(view, OneNode) else combined.rule.rows(pod, view)
        except FAILURES as error:
            raise plugin_error(combined.plugin, error) from error
        if places is None or found is None or isinstance(found, dict):
            return found
        return [found[place] for place in places]


class UsageColumns(msgspec.Struct, gc=False, eq=False, kw_only=True):
    """The filters and scores to be computed again for a row on which a pod was placed or removed, in groups.

    `normalized` are the scores whose extremes a placement may move. `one_node` says whether all plugins accept a
    `OneNode`. `refused` says whether filters refused some of the rows that were repaired last: then they are called
    before the CombinedRules, which have no result for rows that are refused.
    """

    groups: list[ColumnGroup] = []
    normalized: list[ScoreColumn] = []
    one_node: bool = False
    refused: bool = False


def usage_columns(
    pod: PodClass,
    filters: list[FilterColumn],
    scores: list[ScoreColumn],
    combined: list[Combination],
    *,
    supports_one_node: bool,
) -> UsageColumns:
    """Selects them from the columns of a class. `supports_one_node`: all plugins of the profile accept a `OneNode`."""
    filters = [column for column in filters if column.traits.repaired]
    scores = [score for score in scores if score.traits.repaired and score.active]
    return UsageColumns(
        groups=_groups(pod, filters, scores, combined),
        normalized=[score for score in scores if score.plugin.normalize.extremes is not None],
        one_node=supports_one_node or (_one_node(filters) and _one_node(scores)),
    )


def _groups(
    pod: PodClass, filters: list[FilterColumn], scores: list[ScoreColumn], combined: list[Combination]
) -> list[ColumnGroup]:
    groups = []
    for each in combined:
        names = each.rule.names
        of_filters = [column for column in filters if column.plugin.name in names]
        of_scores = [score for score in scores if score.plugin.name in names]
        if (of_filters or of_scores) and each.rule.concerns(pod):
            places = [names.index(score.plugin.name) for score in of_scores]
            in_order = places == list(range(len(places)))
            groups.append(ColumnGroup(of_filters, of_scores, each, None if in_order else places))
            filters = [column for column in filters if column.plugin.name not in names]
            scores = [score for score in scores if score.plugin.name not in names]
    return [*groups, ColumnGroup(filters, scores)] if filters or scores or not groups else groups


def _one_node(columns: Sequence[FilterColumn | ScoreColumn]) -> bool:
    return all(column.traits.supports_one_node for column in columns)
