"""Where other people's numbers come in. A rule from outside may return anything; here it becomes clean integers, or
the attempt fails and names the rule.

A score that is no number on a node where the pod cannot run is nobody's fault (0/0 on a node without the resource):
such rows are only marked, and the mark matters when the row is feasible.
"""

from typing import Any

import numpy as np

from kubenexus.base.errors import KubeNexusError

HIGHEST = 100
MOST = (2**63 - 1) // 100  # 100 times a raw score must stay within int64


class PluginFailedError(KubeNexusError):
    """A rule raised, or broke its contract: the attempt fails and says whose fault it was; the scheduler goes on."""

    def __init__(self, plugin: str, problem: str) -> None:
        self.plugin = plugin
        self.problem = problem
        super().__init__(f"plugin {plugin!r}: {problem}")


def blamed(plugin: Any, error: Exception) -> PluginFailedError:
    """The same error with the plugin's name on it."""
    if isinstance(error, PluginFailedError):
        return error
    return PluginFailedError(plugin.name, f"{type(error).__name__}: {error}")


def clean(raw: Any, width: int, kept: bool, plugin: str) -> tuple[Any, Any]:
    """(scores, unusable): an int for all rows and None, or an int64 column and a mask of rows without a number."""
    try:
        found = np.asarray(raw)
    except (TypeError, ValueError, OverflowError) as error:
        raise PluginFailedError(plugin, f"a score is no number: {error}") from None
    if found.dtype.kind not in "biuf" or found.shape not in ((), (width,)):
        raise PluginFailedError(plugin, f"`score` returned {_shown(raw)}, not a number for each of {width} rows")
    with np.errstate(invalid="ignore"):
        unusable = ~np.isfinite(found) | (found > MOST) | (found < -MOST)
        numbers = np.where(unusable, 0, found).astype(np.int64)
    if kept:
        unusable |= (numbers < 0) | (numbers > HIGHEST)
    if found.shape == ():
        if unusable:
            raise PluginFailedError(plugin, f"a score is {found}, which cannot be used")
        return int(numbers), None
    return numbers, unusable if unusable.any() else None


def in_range(points: Any, plugin: str) -> None:
    """Raise unless all points are 0..100."""
    column = np.asarray(points)
    if column.size and (column.min() < 0 or column.max() > HIGHEST):
        raise PluginFailedError(plugin, f"a normalised score is not within 0..{HIGHEST}")


def _shown(raw: Any) -> str:
    text = repr(raw)
    return text if len(text) <= 60 else text[:57] + "..."
