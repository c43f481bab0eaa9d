"""The table of one class: for every row, may the pod run there, and how good would it be.

Computed once over all rows, then repaired (see `repair`): the row that a placement touched is looked at again by the
plugins whose answer depends on usage, a changed node by all of them. Sums are redone only when a normalisation's
extremes moved. The work is counted, and tests hold it to what changed.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.numbers import BoolColumn, IntColumn
from kubenexus.cycle.census import FEW
from kubenexus.cycle.columns import SUMS, FilterColumn, ScoreColumn
from kubenexus.cycle.lots import BITS, Lots
from kubenexus.framework.contract import FAILURES, PluginFailedError, blamed, called, prepared
from kubenexus.framework.decision import Diagnosis
from kubenexus.framework.job import ALONE, JobView
from kubenexus.framework.limits import Counts
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Only, Prepare, Stamped
from kubenexus.framework.profile import Cast, Lineup
from kubenexus.framework.verdict import Code, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

NOWHERE = -1
# As arrays: NumPy takes its time to look at a Python number.
_SHIFT, _NOWHERE, _NO_REASON = np.array(BITS), np.array(NOWHERE), np.array(0, np.uint8)
_NO_ROWS: BoolColumn = np.zeros(0, np.bool_)
_NO_RANKS: IntColumn = np.zeros(0, np.int64)
_NOT_YET: Any = None
_NOBODY: Any = ()  # a table starts without lists: it is made for each class, and most of them stay empty
_IN_BYTES = 255 // 100  # so many scores of 0..100 add up to what a byte holds


class Work:
    """How much was done, in rows: shared by all tables of a bench, read by tests and benchmarks.

    `rows` were asked about because they changed, `beyond` because something moved that plugins with a stamp look at.
    `failures` are decisions that a plugin failed, by its name.
    """

    __slots__ = ("beyond", "builds", "failures", "rows")

    def __init__(self) -> None:
        self.rows = self.beyond = self.builds = 0
        self.failures: Counter[str] = Counter()


class ClassTable(msgspec.Struct, gc=False, eq=False):
    """`ok` and `rank` are what a decision reads. A rank is the total score with the row's lot below it (see `lots`),
    or NOWHERE where the pod cannot run. `refused`: some plugin refused the whole class. `failed`: scoring failed."""

    pod: PodClass
    lineup: Lineup
    work: Work
    lots: Lots = _NOT_YET
    cast: Cast = _NOT_YET
    stamped: list[Stamped] = _NOT_YET  # plugins that look beyond a row, and have something to say of the class
    filters: list[FilterColumn] = _NOBODY
    scores: list[ScoreColumn] = _NOBODY
    only: tuple[tuple[str, frozenset[str]], ...] = ()
    refused: Verdict | None = None
    failed: Verdict | None = None
    ok: BoolColumn = _NO_ROWS
    steady: Any = None  # ranks of all rows without the scores that look beyond a row, if any plugin does
    rank: IntColumn = _NO_RANKS
    feasible: int = 0
    _closed: tuple[int, Any] = (-1, None)  # rows that are not feasible, as of a version
    version: int = 0  # moves when the set of refused rows or a reason does
    counted: tuple[tuple[int, int], Diagnosis] | None = None
    usage_filters: list[FilterColumn] = _NOBODY
    usage_scores: list[ScoreColumn] = _NOBODY
    usage_extremes: list[ScoreColumn] = _NOBODY  # those of them that are normalised by their extremes
    usage_scalar: bool = False  # whether all of these can look at a single row as plain numbers
    usage_together: bool = False  # whether all of these answer in one go
    moving: list[ScoreColumn] = _NOBODY  # scores that differ between rows, and change with what runs there
    _resting: list[ScoreColumn] = _NOBODY  # those that differ, and change with the node alone
    resting: Any = None  # what the latter add up to on each row, weighted
    _sums: Any = SUMS  # the numbers that `moving` are added up in; None for their own
    looking: list[ScoreColumn] = _NOBODY  # scores that look beyond a row
    stamped_scores: list[ScoreColumn] = _NOBODY  # those of them that have something to add
    untrusted: list[ScoreColumn] = _NOBODY
    constant: int = 0  # what the scores that are the same on all rows add up to; ranks do without it
    spread: bool = False  # one of these no longer is the same on all rows: the sums are to be redone
    feasible_version: int = 0  # the version whose feasible rows were last shown to scores that look at them
    stamps: dict[tuple[str, str], Hashable] = {}  # by plugin and point: what its last answer stood on
    built: bool = False
    marks: tuple[int, int, int] = (0, 0, 0)
    counts: Counts = {}  # of what the class has that costs something to look at
    extra: int = 0  # what that costs with each look, in rows
    held: int = 0  # bytes that it was taken for when it came into the cache
    measured: tuple[int, int] = (-1, -1)  # the cluster on which that was found to be no more than a pod may cost

    def __post_init__(self) -> None:
        profile = self.lineup.profile
        self.lots = Lots(profile.tie_break, profile.seed, self.pod.signature)
        self.cast = self.lineup.cast(self.pod.signed)
        self.stamped = self.cast.stamped

    @property
    def nbytes(self) -> int:
        kept = sum(column.nbytes for column in self.filters) + sum(score.nbytes for score in self.scores)
        sums = sum(column.nbytes for column in (self.steady, self.resting) if column is not None)
        return int(self.ok.nbytes + self.rank.nbytes + sums) + kept + 2048

    @property
    def may_fail(self) -> bool:
        """Whether some filter gave a reason that is an error: it ends the attempt wherever it was given."""
        for column in self.filters:  # noqa: SIM110  # a generator would take longer, and every decision asks
            if column.reasons.failing:
                return True
        return False

    # --- all rows -------------------------------------------------------------------------------------------------

    def build(self, columns: NodeColumns) -> None:
        """Ask every plugin about every row."""
        self.work.builds += 1
        self.work.rows += columns.size
        view = Nodes(columns)
        self.only, self.refused, self.failed = (), None, None
        skipped = [plugin.name for plugin in self.cast.prepares if not self._concerned(plugin, view)]
        self.filters = [FilterColumn(*what) for what in self.cast.filters if what[0].name not in skipped]
        told = dict(zip(self.lineup.joined, self.told(view) or (), strict=False))
        for column in self.filters:
            if column.plugin.name not in told:
                column.fill(column.ask(self.pod, view))
        self.check(columns)
        self.scores = [ScoreColumn(*what) for what in self.cast.scores]
        self.looking = [score for score in self.scores if score.traits.stamped] if self.stamped else _NOBODY
        if self.cast.foreign:
            self.untrusted = [score for score in self.scores if not score.traits.trusted]
        for score in self.scores:
            if score.plugin.name in told:
                score.fill(told[score.plugin.name], view.width)
            elif not score.traits.quiet:
                self.ask_score(score, view)
        for plugin in self.stamped:
            for point in ("filter", "score"):
                self.stamps[plugin.name, point] = called(plugin, plugin.stamp, self.pod, columns, point)
        self.watch_usage()
        self.sum(columns)
        self.feasible_version = self.version
        self.built = True

    def told(self, view: Nodes) -> Sequence[Any] | None:
        """The scores that rules who read the same numbers give these rows in one go: then none of them refuses any.
        None: they are to be asked one by one."""
        together = self.lineup.together
        if together is None:
            return None
        try:
            return together.row(self.pod, view) if isinstance(view, OneNode) else together.rows(self.pod, view)
        except FAILURES as error:
            raise blamed(self.lineup.joining, error) from error

    def watch_usage(self) -> None:
        """Which plugins are to be asked again where a placement changed what runs on a row."""
        self.usage_filters = [column for column in self.filters if column.traits.repaired]
        self.usage_scores = [score for score in self.scores if score.traits.repaired and score.active]
        self.usage_scalar = self.cast.scalar or (_scalar(self.usage_filters) and _scalar(self.usage_scores))
        self.usage_extremes = [score for score in self.usage_scores if not score.kept]
        self.usage_together = self._joined(self.lineup.joined)

    def _joined(self, names: list[str]) -> bool:
        if [score.plugin.name for score in self.usage_scores] != names:
            return False
        return all([column.plugin.name in names for column in self.usage_filters])  # noqa: C419

    def _concerned(self, plugin: Prepare, view: Nodes) -> bool:
        """PreFilter: whether this plugin has anything to say about the class."""
        answer = self.prepare(plugin, view)
        if answer is None or isinstance(answer, Skip):
            return answer is None
        if isinstance(answer, Only):
            self.only += ((plugin.name, answer.names),)
        elif self.refused is None or self.refused.code is Code.UNSCHEDULABLE:
            self.refused = answer
        return True

    def prepare(self, plugin: Prepare, view: Nodes) -> Skip | Only | Verdict | None:
        """What a plugin says of the class as a whole."""
        if self.lineup.traits[plugin.name].trusted:
            return prepared(called(plugin, plugin.prepare, self.pod, view), plugin.name)
        return prepared(called(plugin, plugin.prepare, self.pod, view.locked()), plugin.name)

    def check(self, columns: NodeColumns) -> None:
        """Which rows are feasible, from what the filters said."""
        against: Any = None
        for column in self.filters:
            if column.bits is not None:
                against = column.bits if against is None else against | column.bits
        if against is None:
            ok, self.feasible = columns.alive[: columns.size].copy(), columns.count
        else:
            ok = against == _NO_REASON
            if columns.count != columns.size:
                ok &= columns.alive[: columns.size]
            self.feasible = int(np.count_nonzero(ok))
        if columns.fences:
            ok &= ~columns.fenced[: columns.size]
            self.feasible = int(np.count_nonzero(ok))
        self.ok = ok
        self.version += 1

    def ask_score(self, score: ScoreColumn, view: Nodes, job: JobView = ALONE) -> None:
        """All rows of one plugin. A plugin that fails makes the attempt fail, not the scheduler."""
        try:
            view.feasible = self.ok
            raw = score.ask(self.pod, view, job)
            score.active = not isinstance(raw, (Skip, Verdict))
            if score.active:
                score.fill(raw, view.width)
                if not score.traits.trusted:
                    score.measure(self.ok, self.version)
                    score.verify(self.ok)
            elif isinstance(raw, Verdict):
                self.failed = self.failed or Verdict(raw.code, raw.reasons, score.plugin.name)
        except PluginFailedError as failure:
            score.active = False
            self.failed = self.failed or Verdict(Code.ERROR, (failure.problem,), score.plugin.name)

    def verify(self) -> None:
        """Raise if a rule from outside breaks its contract on a row that is feasible now."""
        for score in self.untrusted:
            if score.active:
                score.measure(self.ok, self.version)
                score.verify(self.ok)

    # --- sums -----------------------------------------------------------------------------------------------------

    def sum(self, columns: NodeColumns) -> None:
        """Normalise, weigh and add up, on all rows."""
        self.moving, self._resting, self.constant = [], [], 0
        for score in self.scores:
            if score.active:
                score.measure(self.ok, self.version)
                if not score.traits.stamped:
                    self._add_up(score)
        self._sums = None if len(self.moving) <= _IN_BYTES and _as_they_are(self.moving) else SUMS
        self.spread, every = False, slice(0, len(self.ok))
        self.resting = self._rest() if self._resting else None
        rank = self.rank_of(columns, every)
        if self.stamped:
            self.steady = rank
            self.add_stamped()
        else:
            self.rank = self._only_feasible(rank)

    def _add_up(self, score: ScoreColumn) -> None:
        """With which others: those that move, those at rest, or those that are the same on all rows."""
        score.same = None
        if isinstance(score.raw, int):
            score.same = score.everywhere()
            self.constant += score.same.normalized * score.same.weight
        elif score.traits.usage:
            self.moving.append(score)
        else:
            self._resting.append(score)

    def add_stamped(self) -> None:
        """Ranks from the steady part of the sums and the scores that change with every pod placed anywhere."""
        self.stamped_scores = [score for score in self.looking if score.active]
        rank = self.steady
        for score in self.stamped_scores:
            more = score.summand()
            # A column is the table's own: the sum takes its place, and no further memory is touched.
            more += rank
            rank = more
        self.rank = self._only_feasible(rank.copy() if rank is self.steady else rank)

    def mend(self, rows: Set[int]) -> None:
        """The same of a few feasible rows, or of none, when nothing else is added to the others than before."""
        for row in rows:
            self.rank[row] = self.with_stamped(row, self.steady.item(row))
        for score in self.stamped_scores:
            score.settle()

    def _only_feasible(self, rank: IntColumn) -> IntColumn:
        if FEW * (len(rank) - self.feasible) > len(rank):
            np.putmask(rank, ~self.ok, _NOWHERE)
        elif self.feasible != len(rank):
            if self._closed[0] != self.version:
                self._closed = (self.version, (~self.ok).nonzero()[0])
            rank[self._closed[1]] = NOWHERE
        return rank

    def rank_of(self, columns: NodeColumns, rows: Any, fresh: Mapping[ScoreColumn, Any] = MappingProxyType({})) -> Any:
        """The steady part of the sums over some rows, with the rows' lots below it: all but scores that are the same on
        all rows, or change with every pod placed anywhere. `fresh` are raw scores of these rows that are at hand."""
        total, lots = None, self.lots.many(columns, rows)
        for score in self.moving:
            part = score.part(rows, raw=fresh.get(score))
            total = part if total is None else np.add(total, part, dtype=self._sums)
        if self.resting is not None:
            total = self.resting[rows] if total is None else np.add(self.resting[rows], total, dtype=SUMS)
        if total is None:
            return lots.astype(np.int64)
        rank = total.astype(np.int64)
        rank <<= _SHIFT
        return np.bitwise_or(rank, lots, out=rank)

    def rest(self, rows: Any) -> None:
        """Nodes changed: what does not follow from what runs there is added up again."""
        if self.resting is not None:
            if not self.resting.flags.writeable:
                self.resting = self.resting.copy()
            self.resting[rows] = sum(score.part(rows) for score in self._resting)

    def _rest(self) -> Any:
        total = None
        for score in self._resting:
            total = score.resting() if total is None else total + score.resting()
        return total

    def with_stamped(self, rows: Any, steady: Any) -> Any:
        """The whole ranks, from their steady part on a row or some."""
        for score in self.stamped_scores:
            steady = steady + (score.part_at(rows) << BITS if isinstance(rows, int) else score.part(rows, BITS))
        return steady


def _scalar(columns: Sequence[FilterColumn | ScoreColumn]) -> bool:
    """Whether all can look at a single row as plain numbers."""
    return all(column.traits.scalar for column in columns)


def _as_they_are(scores: list[ScoreColumn]) -> bool:
    """Whether they are added up neither normalised nor weighted."""
    return all([score.kept and score.weight == 1 for score in scores])  # noqa: C419
