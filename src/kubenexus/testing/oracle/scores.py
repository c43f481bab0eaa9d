"""Compares scores on the recorded feasible nodes, so that a filter's error does not hide a scorer's."""

from typing import Any

import numpy as np

from kubenexus.base.errors import KubeNexusError
from kubenexus.cycle.select import score_rows
from kubenexus.testing.oracle.comparability import Comparability
from kubenexus.testing.oracle.comparison_counts import ComparisonCounts
from kubenexus.testing.oracle.expected import ExpectedPod
from kubenexus.testing.oracle.our_answers import OurAnswers
from kubenexus.testing.oracle.upstream import SCORES

Column = dict[str, int]


def compare_scores(ours: OurAnswers, expected: ExpectedPod, say: Comparability, tally: ComparisonCounts) -> None:
    _compare_failure(ours, expected, say, tally)
    if expected.scores is None:
        return
    nodes = expected.feasible
    raw, norm, total = _scores(ours, nodes)
    for plugin in SCORES:
        if plugin not in say.built.scores:
            tally.leave("skipScore", plugin=plugin)
        else:
            tally.compare("skipScore", plugin not in raw, plugin in expected.skip_score, plugin=plugin)
    for plugin, said in expected.scores.items():
        for aspect, mine, theirs in (("raw", raw, said.raw), ("norm", norm, said.norm)):
            if plugin not in say.built.scores:
                tally.leave(aspect, len(theirs), plugin=plugin)
            else:
                _compare_column(aspect, mine.get(plugin, {}), dict(zip(nodes, theirs, strict=True)), plugin, tally)
    _compare_column("total", total, _total(expected, say), "", tally)
    _compare_choice(ours, total, expected, say, tally)


def _compare_column(aspect: str, ours: Column, expected: Column, plugin: str, tally: ComparisonCounts) -> None:
    tally.compare_nodes(aspect, ours, expected, plugin=plugin, nodes=len(expected))


def _scores(ours: OurAnswers, nodes: list[str]) -> tuple[dict[str, Column], dict[str, Column], Column]:
    """Returns raw and normalised scores of each plugin that has any, and the weighted sums."""
    rows = np.array([ours.columns.row_of[node] for node in nodes], np.int64)
    raw: dict[str, Column] = {}
    norm: dict[str, Column] = {}
    total = np.zeros(len(rows), np.int64)
    for scored in score_rows(ours.classified.table, rows, ours.columns):
        raw[scored.plugin] = {node: scored.shown(i) for i, node in enumerate(nodes)}
        norm[scored.plugin] = _column(nodes, scored.normalized)
        total += scored.weight * np.asarray(scored.normalized)
    return raw, norm, _column(nodes, total)


def _column(nodes: list[str], values: Any) -> Column:
    return dict(zip(nodes, np.broadcast_to(values, len(nodes)).tolist(), strict=True))


def _total(expected: ExpectedPod, say: Comparability) -> Column:
    """Returns the recorded sums without the part of the plugins that we lack."""
    if len(expected.total) != len(expected.feasible):
        raise KubeNexusError(f"{len(expected.total)} sums for {len(expected.feasible)} nodes")
    sums = np.array(expected.total, np.int64)
    for plugin, said in (expected.scores or {}).items():
        if plugin not in say.built.scores:
            sums -= SCORES[plugin] * np.array(said.norm, np.int64)
    return dict(zip(expected.feasible, sums.tolist(), strict=True))


def _compare_choice(
    ours: OurAnswers, total: Column, expected: ExpectedPod, say: Comparability, tally: ComparisonCounts
) -> None:
    """Compares the best nodes by our sums, and checks that the decision takes one of them."""
    best = frozenset(expected.best or ())
    if say.ranking:
        top = max(total.values())
        tally.compare("best", {node for node, sum_ in total.items() if sum_ == top}, best)
    else:
        tally.leave("best")
    if expected.error and say.error:
        tally.compare("choice", bool(ours.decision.placements), False)
    elif say.ranking and say.feasible and say.prefilter and not expected.error:
        nominated = ours.pod.status.nominated_node_name  # such a pod takes that node at once, if it can
        allowed = {nominated} if nominated in expected.feasible else best
        chosen = {placement.node for placement in ours.decision.placements} or {ours.decision.sentence()}
        tally.compare("choice", chosen if not chosen <= allowed else allowed, allowed)
    else:
        tally.leave("choice")


def _compare_failure(ours: OurAnswers, expected: ExpectedPod, say: Comparability, tally: ComparisonCounts) -> None:
    if not expected.feasible:
        return
    if not say.score_error:
        tally.leave("scoreError")
        return
    failed = ours.classified.table.score_error
    said = "" if failed is None else f'running PreScore plugin "{failed.plugin}": {", ".join(failed.reasons)}'
    tally.compare("scoreError", said, expected.score_error)
