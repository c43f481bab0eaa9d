"""The columns of a class that a placement changes, on the row where it happened."""

from collections.abc import Sequence

import msgspec

from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.cycle.scores.column import ScoreColumn


class UsageColumns(msgspec.Struct, gc=False, eq=False, kw_only=True):
    """The filters and scores to be computed again for a row on which a pod was placed or removed.

    `normalized` are the scores whose extremes a placement may move. `one_node` says whether all plugins accept a
    `OneNode`. `combined` says whether the profile's `CombinedRule` covers all of them.
    """

    filters: list[FilterColumn] = []
    scores: list[ScoreColumn] = []
    normalized: list[ScoreColumn] = []
    one_node: bool = False
    combined: bool = False


def usage_columns(
    filters: list[FilterColumn], scores: list[ScoreColumn], *, supports_one_node: bool, combined_names: list[str]
) -> UsageColumns:
    """Selects them from the columns of a class. `supports_one_node`: all plugins of the profile accept a `OneNode`."""
    filters = [column for column in filters if column.traits.repaired]
    scores = [score for score in scores if score.traits.repaired and score.active]
    covered = [score.plugin.name for score in scores] == combined_names
    return UsageColumns(
        filters=filters,
        scores=scores,
        normalized=[score for score in scores if not score.scale.is_normalized],
        one_node=supports_one_node or (_one_node(filters) and _one_node(scores)),
        combined=covered and all([column.plugin.name in combined_names for column in filters]),  # noqa: C419
    )


def _one_node(columns: Sequence[FilterColumn | ScoreColumn]) -> bool:
    return all(column.traits.supports_one_node for column in columns)
