"""Checks what plugins that are not built in return. The result is clean integers, or a PluginError fails the attempt.

A score that is no number is an error on feasible rows only: a node without a resource gives 0/0. Other such rows are
marked, and the mark matters once the row is feasible.
"""

from typing import Any

import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import CodedScores
from kubenexus.framework.plugin_results import PluginError, checked_verdict, describe_result, raise_contract_error
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, ReasonTable, Verdict
from kubenexus.state.view import Nodes

HIGHEST = 100
UNUSABLE = "the score of a feasible node is no usable number"
MAX_RAW_SCORE = (2**63 - 1) // 100  # 100 times a raw score must stay within int64


def sanitize_scores(raw: Any, width: int, kept: bool, plugin: str) -> tuple[Any, Any]:
    """Returns (scores, unusable): an int for all rows and None, or an int64 column and a mask of rows without a number.

    `kept` says that raw scores are points of 0..100 already.
    """
    try:
        found = np.asarray(raw)
    except Exception as error:
        raise PluginError(plugin, f"a score is no number: {error}") from None
    if found.dtype.kind not in "biuf" or found.shape not in ((), (width,)):
        raise PluginError(plugin, f"`score` returned {describe_result(raw)}, not a number for each of {width} rows")
    with np.errstate(invalid="ignore"):
        unusable = ~np.isfinite(found) | (found > MAX_RAW_SCORE) | (found < -MAX_RAW_SCORE)
        numbers = np.where(unusable, 0, found).astype(np.int64)
    if kept:
        unusable |= (numbers < 0) | (numbers > HIGHEST)
    if found.shape == ():
        if unusable:
            raise PluginError(plugin, f"a score is {found}, which cannot be used")
        return int(numbers), None
    return numbers, unusable if unusable.any() else None


def usable(raw: Any, width: int, kept: bool, plugin: str) -> Any:
    """Returns the scores of rows that are all feasible. Raises PluginError if one of them is unusable."""
    scores, unusable = sanitize_scores(raw, width, kept, plugin)
    if unusable is not None:
        raise PluginError(plugin, UNUSABLE)
    return scores


def check_score_range(points: Any, plugin: str) -> None:
    """Raises PluginError unless all points are 0..100."""
    column = np.asarray(points)
    if column.size and (column.min() < 0 or column.max() > HIGHEST):
        raise PluginError(plugin, f"a normalised score is not within 0..{HIGHEST}")


def points(raw: Any, answer: Any, plugin: str) -> Any:
    """Returns what a plugin's `normalize` returned for raw scores, as integers.

    An unusable number becomes -1. That is out of range, and an error only if the row is feasible.
    """
    try:
        found = np.asarray(answer)
    except Exception:
        raise_contract_error(plugin, "normalize", answer, "numbers")
    if found.dtype.kind not in "biuf" or found.shape != np.shape(raw):
        raise_contract_error(plugin, "normalize", answer, f"numbers of shape {np.shape(raw)}")
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(found) & (found >= 0) & (found <= HIGHEST)
        numbers = np.where(usable, found, -1).astype(np.int64)
    return int(numbers) if isinstance(raw, int) else numbers


def extremes(answer: Any, plugin: str) -> tuple[int, ...]:
    """Returns what a plugin's `extremes` returned. Raises PluginError unless it is a tuple of numbers."""
    plain = isinstance(answer, tuple) and all(isinstance(each, (int, float, np.number)) for each in answer)
    if not plain or not all(np.isfinite(float(each)) for each in answer):
        raise_contract_error(plugin, "extremes", answer, "a tuple of numbers")
    return tuple(answer)


def scored(answer: Any, plugin: str) -> Any:
    """Returns what `score` returned, with codes replaced by their values: SKIP, a Verdict, or input for
    `sanitize_scores`. Raises PluginError for a Verdict without an error."""
    if isinstance(answer, Verdict):
        verdict = checked_verdict(answer, plugin, "score")
        return raise_contract_error(plugin, "score", answer, "scores") if verdict is None else verdict
    if not isinstance(answer, CodedScores):
        return answer
    try:
        return np.asarray(answer.values)[np.asarray(answer.codes)]
    except Exception:
        raise_contract_error(plugin, "score", answer, "codes that stand for values")


def rejected(answer: Any, verdict: NodeVerdict, nodes: Nodes, plugin: str) -> None:
    """Raises PluginError unless `filter` returned None and wrote valid reasons into `verdict`."""
    if answer is not None:
        raise_contract_error(plugin, "filter", answer, "None: rows are refused by `verdict.reject`")
    bits, table = verdict.bits, verdict.table
    if not isinstance(table, ReasonTable) or not all(_reason(each) for each in table.reasons):
        raise PluginError(plugin, "`filter` refused rows without a Reason that has a text and a Code")
    if isinstance(bits, int):
        fine = bits >> len(table.reasons) == 0 and (bits == 0 or nodes.single)
    else:
        fine = isinstance(bits, np.ndarray) and bits.shape == (nodes.width,) and bits.dtype.kind == "u"
        fine = fine and int(bits.max(initial=0)) >> len(table.reasons) == 0
    if not fine:
        raise PluginError(plugin, f"`filter` refused {describe_result(bits)}, not some of {nodes.width} rows")


def lowered(before: IntColumn, after: Any, plugin: str) -> None:
    """Raises PluginError unless `capacity` left a column that is nowhere negative and nowhere higher than before."""
    if after.shape != before.shape or after.dtype != before.dtype or (after < 0).any() or (after > before).any():
        raise PluginError(plugin, "`capacity` may only lower how many pods a node can take, to 0 at least")


def _reason(reason: Any) -> bool:
    if not isinstance(reason, Reason) or not isinstance(reason.text, str) or not isinstance(reason.code, Code):
        return False
    return reason.code is not Code.SUCCESS
