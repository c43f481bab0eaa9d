"""What one plugin said about all rows for one class: kept, and corrected row by row."""

import functools
from collections.abc import Hashable, Set
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import BoolColumn
from kubenexus.cycle import plugin_output
from kubenexus.cycle.code_counts import CodeCounts
from kubenexus.cycle.coded_cache import cache_of
from kubenexus.cycle.plugin_output import check_score_range, sanitize_scores
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.framework.decision import PluginScore
from kubenexus.framework.extension_points import (
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    CodedScores,
    Filter,
    Normalize,
    Score,
)
from kubenexus.framework.job import JobView
from kubenexus.framework.plugin_results import FAILURES, PluginError, call_plugin, plugin_error
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.profile import PluginTraits
from kubenexus.framework.verdict import NO_REASONS, NodeVerdict, ReasonTable
from kubenexus.state.view import Nodes

SUMS = np.int32  # a sum of weighted scores has 31 bits (see framework.profile)
_SHIFT = np.array(TIE_BREAK_BITS)
_MANY, _FEW = 256, 16  # values of a coded score
_BYTE = 255


class FilterColumn(msgspec.Struct, gc=False, eq=False):
    """`bits[n]` holds the reasons against row n, 0 if there are none; None while no row was ever refused.

    Bits are kept in the smallest type that holds them: most classes know a handful of reasons.
    """

    plugin: Filter
    traits: PluginTraits
    reasons: ReasonTable = NO_REASONS
    bits: Any = None

    def ask(self, pod: PodClass, nodes: Nodes) -> Any:
        """What the plugin says of these rows, as bits."""
        plugin: Any = self.plugin
        trusted = self.traits.trusted
        verdict = NodeVerdict(self.reasons if trusted else self.reasons.copy())
        try:  # not `call_plugin`: this is asked for each row that changes
            answer = plugin.filter(pod, nodes if trusted else nodes.locked(), verdict)
        except FAILURES as error:
            raise plugin_error(plugin, error) from error
        if not trusted:
            plugin_output.rejected(answer, verdict, nodes, plugin.name)
        self.reasons = verdict.table
        return verdict.row_bits if nodes.single else verdict.bits

    def fill(self, bits: Any) -> None:
        """Take the answer for all rows."""
        if isinstance(bits, int):
            self.bits = None
        else:
            self.bits = bits if bits.dtype == np.uint8 else bits.astype(np.min_scalar_type(int(bits.max(initial=0))))

    def put(self, rows: Any, bits: Any, size: int) -> bool:
        """Take the answer for some rows (an index or an array of them); whether it is another than before."""
        if self.bits is None and isinstance(bits, int) and not bits:
            return False
        if isinstance(rows, int) and self.bits is not None and bits == self.bits.item(rows):
            return False
        top = bits if isinstance(bits, int) else int(bits.max(initial=0))
        if self.bits is None:
            self.bits = np.zeros(size, np.min_scalar_type(top))
        elif top > _BYTE and top > np.iinfo(self.bits.dtype).max:
            self.bits = self.bits.astype(np.min_scalar_type(top))
        changed = isinstance(rows, int) or bool(np.count_nonzero(self.bits[rows] != bits))
        if changed:
            if not self.bits.flags.writeable:  # classes that refuse the same rows share them until they differ
                self.bits = self.bits.copy()
            self.bits[rows] = bits
        return changed

    def at(self, row: int) -> int:
        return 0 if self.bits is None else int(self.bits.item(row))

    def stretch(self, size: int) -> None:
        if self.bits is not None:
            self.bits = _stretched(self.bits, size)

    @property
    def nbytes(self) -> int:
        return 0 if self.bits is None else int(self.bits.nbytes)


class ScoreColumn(msgspec.Struct, gc=False, eq=False):
    """Raw scores of one plugin, the extremes they were normalised with, and its weight. An int when equal on all rows,
    `CodedScores` when they take few values.

    Scores that are kept as they are (0..100) take a byte a row; others keep their full range.
    """

    plugin: Score
    weight: int
    traits: PluginTraits
    is_normalized: bool  # normalised they are what they were
    raw: Any
    uniform_score: PluginScore | None = None  # what it adds to the total of every row, where that is the same
    extremes: tuple[int, ...] = ()
    active: bool = True
    unusable: Any = None  # rows where a rule from outside gave no number
    _census: CodeCounts | None = None  # of a coded score, once it was measured
    _parts: dict[int, int] | None = None  # by code, normalised and weighted, while feasible rows have few codes
    _shown: tuple[int, tuple[int, ...], PluginScore] | None = None
    _normal: Any = None  # the few values of a coded score, normalised and weighted
    _summed: tuple[Hashable, Any] = (None, None)  # the codes' key and parts or values, as last added to the sums

    def ask(self, pod: PodClass, nodes: Nodes, job: JobView) -> Any:
        """What the plugin says of these rows: scores, SKIP or a Verdict."""
        if not self.traits.trusted:
            return plugin_output.scored(
                call_plugin(self.plugin, self.plugin.score, pod, nodes.locked(), job), self.plugin.name
            )
        try:
            return self.plugin.score(pod, nodes, job)
        except FAILURES as error:
            raise plugin_error(self.plugin, error) from error

    def fill(self, raw: Any, width: int) -> None:
        """Take the scores of all rows: the column is the table's own from now on."""
        self._normal = self._parts = None
        if isinstance(raw, CodedScores):
            if raw.key is None:
                raw.key = object()
            self.raw = raw
        elif self.traits.trusted:
            self.raw = (
                raw if isinstance(raw, int) else raw.astype(np.uint8 if self.is_normalized else np.int64, copy=False)
            )
        else:
            self.raw, self.unusable = sanitize_scores(raw, width, self.is_normalized, self.plugin.name)

    def put(self, rows: Any, raw: Any, size: int) -> bool:
        """Take the scores of some rows; whether this made a column of what was the same on all rows."""
        held = self.raw
        if self.traits.trusted and isinstance(held, np.ndarray) and (isinstance(raw, int) or raw.dtype == held.dtype):
            held[rows] = raw  # the hot path: rows of a built-in rule
            return False
        spread = False
        if not self.traits.trusted:
            raw = self._cleaned(rows, raw, size)
        if isinstance(self.raw, CodedScores):
            self.raw = self.take(slice(None))
        if isinstance(self.raw, int):
            if isinstance(raw, int) and raw == self.raw:
                return False
            kind = np.uint8 if self.is_normalized and self.traits.trusted else np.int64
            self.raw, spread = np.full(size, self.raw, kind), True
        if isinstance(raw, np.ndarray) and raw.dtype != self.raw.dtype:
            raw = raw.astype(self.raw.dtype)  # which is quicker than casting element by element on the way in
        self.raw[rows] = raw
        return spread

    def _cleaned(self, rows: Any, raw: Any, size: int) -> Any:
        raw, unusable = sanitize_scores(raw, len(rows), self.is_normalized, self.plugin.name)
        if self.unusable is None and unusable is not None:
            self.unusable = np.zeros(size, np.bool_)
        if self.unusable is not None:
            self.unusable[rows] = False if unusable is None else unusable
        return raw

    def verify(self, ok: BoolColumn) -> None:
        """Raise if a rule from outside gave a feasible row no number, or points that are not 0..100."""
        if self.unusable is not None and (self.unusable & ok).any():
            raise PluginError(self.plugin.name, plugin_output.UNUSABLE)
        points = self.everywhere().normalized if isinstance(self.raw, int) else self.normalized(self.take(ok))
        check_score_range(points, self.plugin.name)

    def rows_to_resum(self, ok: BoolColumn) -> Set[int] | None:
        """The feasible rows to which something else is to be added than what is in their sums; None: it may be any.
        Extremes may move and change nothing: where all are equal, equally many pods more are worth the same."""
        if not isinstance(self.raw, CodedScores):
            return None
        (key, known), parts = self._summed, self._parts
        if parts is None:
            same = key == self.raw.key and not isinstance(known, dict)
            return frozenset() if same and np.array_equal(known, self._normalized_values()) else None
        if not isinstance(known, dict) or self._census is None:
            return None
        return self._census.changed(self.raw, ok, key, [code for code in parts if known.get(code) != parts[code]])

    def mark_summed(self) -> None:
        """Rows are as they should be now, and those that come to be feasible are summed up with the same parts."""
        if isinstance(self.raw, CodedScores):
            self._summed = (self.raw.key, self._normalized_values() if self._parts is None else self._parts)

    def take(self, rows: Any) -> Any:
        """Raw scores of some rows, as int64 or an int."""
        if isinstance(self.raw, CodedScores):
            return self.raw.values[self.raw.codes[rows]]
        return self.raw if isinstance(self.raw, int) else self.raw[rows].astype(np.int64)

    def at(self, row: int) -> int:
        raw = self.raw
        if isinstance(raw, int):
            return raw
        return int(raw.values.item(raw.codes.item(row)) if isinstance(raw, CodedScores) else raw.item(row))

    def measure(self, ok: BoolColumn, version: int) -> bool:
        """Look for the extremes over the feasible rows again (`version` names them); whether they moved."""
        if self.is_normalized:
            return False
        old = self.extremes
        try:
            self._measure(ok, version)
        except FAILURES as error:
            raise plugin_error(self.plugin, error) from error
        if old != self.extremes:
            self._normal = None
        return old != self.extremes

    def _measure(self, ok: BoolColumn, version: int) -> None:
        normalize = self.plugin.normalize
        if normalize.extremes is None:
            return
        if isinstance(self.raw, int):
            self.extremes = _everywhere(self.plugin.name, normalize, self.raw, self.weight)[0]
        elif isinstance(self.raw, CodedScores):
            if len(self.raw.values) <= _FEW and (normalize is HIGHER_IS_BETTER or normalize is LOWER_IS_BETTER):
                self.extremes = (cache_of(self.raw).max_feasible(ok),)
            else:
                self.extremes = self._of_codes(ok, version)
        else:
            self.extremes = (
                self._top(ok)
                if normalize is HIGHER_IS_BETTER or normalize is LOWER_IS_BETTER
                else self.extremes_of(self.raw[ok])
            )

    def extremes_of(self, raw: Any) -> tuple[int, ...]:
        """What the plugin's own way to normalise reduces some raw scores to."""
        reduce = self.plugin.normalize.extremes
        if reduce is None:
            return ()
        found = call_plugin(self.plugin, reduce, raw)
        return found if self.traits.trusted else plugin_output.extremes(found, self.plugin.name)

    def _of_codes(self, ok: BoolColumn, version: int) -> tuple[int, ...]:
        """The extremes of the values that feasible rows have. Where these are few, each one's part is told at once."""
        normalize, values = self.plugin.normalize, self.raw.values
        if self._census is None:
            self._census = CodeCounts()
        few, extremes_of = normalize.apply_few, normalize.extremes
        codes = None if few is None else self._census.few(self.raw, ok, version)
        if codes is None or few is None:
            self._parts = None
            return () if extremes_of is None else extremes_of(values[self._census.present(self.raw, ok, version)])
        extremes, points = few([*map(values.item, codes)])
        self._parts = {code: self.weight * point for code, point in zip(codes, points, strict=True)}
        return extremes

    def _top(self, ok: BoolColumn) -> tuple[int]:
        """The largest over the feasible rows, at least 0: mostly it is the largest of all."""
        if not len(ok):
            return (0,)
        top = int(self.raw.argmax())
        return (max(self.raw.item(top), 0) if ok.item(top) else int((self.raw * ok).max(initial=0)),)

    def normalized(self, raw: Any, extremes: tuple[int, ...] | None = None) -> Any:
        apply = self.plugin.normalize.apply
        if apply is None:
            return raw
        try:
            points = apply(raw, self.extremes if extremes is None else extremes)
        except FAILURES as error:
            raise plugin_error(self.plugin, error) from error
        return points if self.traits.trusted else plugin_output.points(raw, points, self.plugin.name)

    def part(self, rows: Any, shift: int = 0, raw: Any = None) -> Any:
        """What the plugin adds to the total of some rows: weighted, normalised with the table's extremes. `raw` are
        the raw scores of these rows, where they are at hand."""
        weight = self.weight << shift
        if weight == 1 and self.is_normalized and raw is not None:
            return raw
        if isinstance(self.raw, CodedScores):
            values = self._normalized_values() << shift if shift else self._normalized_values()
            return values.take(self.raw.codes[rows])
        if raw is None:
            raw = self.raw if isinstance(self.raw, int) else self.raw[rows]
        part = raw if self.is_normalized else self.normalized(raw)
        return part if weight == 1 else part * weight if isinstance(part, int) else _times(part, weight)

    def static_part(self) -> Any:
        """What the plugin adds to the totals of all rows, for whoever keeps it. It may be shared, and read-only."""
        if not isinstance(self.raw, CodedScores):
            return self.part(slice(None)).astype(SUMS)
        return cache_of(self.raw).memo(
            ("column", self.extremes, self.weight),
            lambda: self._normalized_values().take(self.raw.codes).astype(SUMS),
        )

    def rank_part(self) -> Any:
        """What the plugin adds to the ranks of all rows."""
        if not isinstance(self.raw, CodedScores):
            return self.part(slice(None), TIE_BREAK_BITS)
        self.mark_summed()
        if self._parts is None:
            return (self._normalized_values() << _SHIFT).take(self.raw.codes)
        values = np.zeros(len(self.raw.values), np.int64)  # anything where no feasible row has the code
        for code, part in self._parts.items():
            values[code] = part << TIE_BREAK_BITS
        return values.take(self.raw.codes)

    def part_at(self, row: int) -> int:
        """The same of one row, as a number."""
        if isinstance(self.raw, CodedScores):
            code = self.raw.codes.item(row)
            part = None if self._parts is None else self._parts.get(code)
            return int(self._normalized_values().item(code)) if part is None else part
        return int(self.part(row))

    def _normalized_values(self) -> Any:
        if self._normal is None:
            values = self.raw.values
            if self.raw.cache is not None:
                wanted = ("values", self.extremes, self.weight)
                self._normal = cache_of(self.raw).memo(wanted, lambda: self.normalized(values) * self.weight)
            elif len(values) <= _MANY or not self.traits.trusted:
                self._normal = self.normalized(values) * self.weight
            else:
                self._normal = self._looked_up(values)
        return self._normal

    def _looked_up(self, values: Any) -> Any:
        """Many codes, and mostly few different values: as when each node's pods are counted."""
        least, most = values.item(values.argmin()), values.item(values.argmax())
        if most - least >= len(values) // 4:
            return self.normalized(values) * self.weight
        table = self.normalized(np.arange(least, most + 1)) * self.weight
        return table.take(values - least if least else values)

    def everywhere(self) -> PluginScore:
        """The plugin's part in the total of every row, where its raw scores are all the same."""
        try:
            return _everywhere(self.plugin.name, self.plugin.normalize, self.raw, self.weight)[1]
        except FAILURES as error:
            raise plugin_error(self.plugin, error) from error

    def shown_at(self, row: int) -> PluginScore:
        """The plugin's part in the total of one row. Mostly the same as last time: then it is the same object."""
        raw = self.raw.item(row) if isinstance(self.raw, np.ndarray) else self.at(row)
        known = self._shown
        if known is None or known[0] != raw or known[1] != self.extremes:
            normalize = self.plugin.normalize
            normalized = raw if normalize.apply is None else self._normalized_at(row)
            shown = PluginScore(self.plugin.name, self.shown(raw), normalized, self.weight)
            known = self._shown = (raw, self.extremes, shown)
        return known[2]

    def shown(self, raw: int) -> int:
        """A raw score as explanations show it."""
        try:
            return int(self.plugin.normalize.displayed(raw))
        except FAILURES as error:
            raise plugin_error(self.plugin, error) from error

    def _normalized_at(self, row: int) -> int:
        """One row, through the same arithmetic on columns that ranked it."""
        if isinstance(self.raw, CodedScores):
            return self.part_at(row) // max(self.weight, 1)
        if self.plugin.normalize is HIGHER_IS_BETTER or self.plugin.normalize is LOWER_IS_BETTER:
            return int(self.normalized(self.at(row)))
        raw = np.array([self.at(row)], np.int64)
        return int(self.normalized(raw)[0])

    def stretch(self, size: int) -> None:
        if isinstance(self.raw, CodedScores):
            self.raw = CodedScores(_stretched(self.raw.codes, size), self.raw.values, object())
        elif not isinstance(self.raw, int):
            self.raw = _stretched(self.raw, size)
        if self.unusable is not None:
            self.unusable = _stretched(self.unusable, size)

    @property
    def nbytes(self) -> int:
        if isinstance(self.raw, CodedScores):
            return int(self.raw.codes.nbytes)
        return 0 if isinstance(self.raw, int) else int(self.raw.nbytes)


@functools.lru_cache(maxsize=1024)
def _everywhere(plugin: str, normalize: Normalize, raw: int, weight: int) -> tuple[tuple[int, ...], PluginScore]:
    """The extremes of a score that is the same on all rows, and its part in their totals. It does not depend on which
    rows there are, and most classes are given the same."""
    column = np.array([raw], np.int64)
    extremes = () if normalize.extremes is None else normalize.extremes(column)
    normalized = raw if normalize.apply is None else int(normalize.apply(column, extremes)[0])
    return extremes, PluginScore(plugin, int(normalize.displayed(raw)), normalized, weight)


def _times(part: Any, weight: int) -> Any:
    return np.multiply(part, weight, dtype=np.int64)


def _stretched(array: Any, size: int) -> Any:
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
