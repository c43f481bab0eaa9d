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

from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.cycle.scores.code_counts import FEW
from kubenexus.cycle.scores.column import ScoreColumn
from kubenexus.cycle.scores.scale import SUMS
from kubenexus.cycle.tie_break import TIE_BREAK_BITS, TieBreaker
from kubenexus.framework.decision import Diagnosis
from kubenexus.framework.extension_points import PreFilter, PreFilterResult, Stamped
from kubenexus.framework.job import SINGLE_POD_VIEW, JobView
from kubenexus.framework.plugin_results import FAILURES, PluginError, call_plugin, checked_pre_filter, plugin_error
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.pod_limits import Counts
from kubenexus.framework.profile import ClassPlugins, ProfilePlugins
from kubenexus.framework.verdict import Code, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

INFEASIBLE = -1
# As arrays: NumPy takes its time to look at a Python number.
_SHIFT, _NOWHERE, _NO_REASON = np.array(TIE_BREAK_BITS), np.array(INFEASIBLE), np.array(0, np.uint8)
_NO_ROWS: BoolColumn = np.zeros(0, np.bool_)
_NO_RANKS: IntColumn = np.zeros(0, np.int64)
_NOT_YET: Any = None
_NOBODY: Any = ()  # a table starts without lists: it is made for each class, and most of them stay empty
_IN_BYTES = 255 // 100  # so many scores of 0..100 add up to what a byte holds


class WorkCounter:
    """How much was done, in rows: shared by all tables of a bench, read by tests and benchmarks.

    `rows` were asked about because they changed, `beyond` because something moved that plugins with a stamp look at.
    `failures` are decisions that a plugin failed, by its name.
    """

    __slots__ = ("beyond", "builds", "failures", "rows")

    def __init__(self) -> None:
        self.rows = self.beyond = self.builds = 0
        self.failures: Counter[str] = Counter()


class ClassTable(msgspec.Struct, gc=False, eq=False):
    """`feasible` and `rank` are what a decision reads. A rank is the total score with the row's lot below it (see
    `tie_breaker`), or NOWHERE where the pod cannot run. `rejection`: some plugin refused the whole class.
    `score_error`: scoring failed."""

    pod: PodClass
    profile_plugins: ProfilePlugins
    work: WorkCounter
    tie_breaker: TieBreaker = _NOT_YET
    plugins: ClassPlugins = _NOT_YET
    stamped: list[Stamped] = _NOT_YET  # plugins that look beyond a row, and have something to say of the class
    filters: list[FilterColumn] = _NOBODY
    scores: list[ScoreColumn] = _NOBODY
    node_names: tuple[tuple[str, frozenset[str]], ...] = ()
    rejection: Verdict | None = None
    score_error: Verdict | None = None
    feasible: BoolColumn = _NO_ROWS
    base_rank: Any = None  # ranks of all rows without the scores that look beyond a row, if any plugin does
    rank: IntColumn = _NO_RANKS
    feasible_count: int = 0
    _closed: tuple[int, Any] = (-1, None)  # rows that are not feasible, as of a version
    version: int = 0  # moves when the set of refused rows or a reason does
    cached_diagnosis: tuple[tuple[int, int], Diagnosis] | None = None
    usage_filters: list[FilterColumn] = _NOBODY
    usage_scores: list[ScoreColumn] = _NOBODY
    usage_extremes: list[ScoreColumn] = _NOBODY  # those of them that are normalised by their extremes
    usage_scalar: bool = False  # whether all of these can look at a single row as plain numbers
    usage_together: bool = False  # whether all of these answer in one go
    usage_dependent: list[ScoreColumn] = _NOBODY  # scores that differ between rows, and change with what runs there
    _resting: list[ScoreColumn] = _NOBODY  # those that differ, and change with the node alone
    static_sum: Any = None  # what the latter add up to on each row, weighted
    _sums: Any = SUMS  # the numbers that `usage_dependent` are added up in; None for their own
    stamped_columns: list[ScoreColumn] = _NOBODY  # scores that look beyond a row
    stamped_scores: list[ScoreColumn] = _NOBODY  # those of them that have something to add
    untrusted: list[ScoreColumn] = _NOBODY
    uniform_sum: int = 0  # what the scores that are the same on all rows add up to; ranks do without it
    sums_outdated: bool = False  # one of these no longer is the same on all rows: the sums are to be redone
    feasible_version: int = 0  # the version whose feasible rows were last shown to scores that look at them
    stamps: dict[tuple[str, str], Hashable] = {}  # by plugin and point: what its last answer stood on
    built: bool = False
    marks: tuple[int, int, int] = (0, 0, 0)
    counts: Counts = {}  # of what the class has that costs something to look at
    extra: int = 0  # what that costs with each look, in rows
    held: int = 0  # bytes that it was taken for when it came into the cache
    measured: tuple[int, int] = (-1, -1)  # the cluster on which that was found to be no more than a pod may cost

    def __post_init__(self) -> None:
        profile = self.profile_plugins.profile
        self.tie_breaker = TieBreaker(profile.tie_break, profile.seed, self.pod.signature)
        self.plugins = self.profile_plugins.for_class(self.pod.signed)
        self.stamped = self.plugins.stamped

    @property
    def nbytes(self) -> int:
        kept = sum(column.nbytes for column in self.filters) + sum(score.nbytes for score in self.scores)
        sums = sum(column.nbytes for column in (self.base_rank, self.static_sum) if column is not None)
        return int(self.feasible.nbytes + self.rank.nbytes + sums) + kept + 2048

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
        self.node_names, self.rejection, self.score_error = (), None, None
        skipped = [plugin.name for plugin in self.plugins.pre_filter if not self._concerned(plugin, view)]
        self.filters = [FilterColumn(*what) for what in self.plugins.filters if what[0].name not in skipped]
        told = dict(zip(self.profile_plugins.combined_names, self.combined_scores(view) or (), strict=False))
        for column in self.filters:
            if column.plugin.name not in told:
                column.fill(column.ask(self.pod, view))
        self.compute_feasible(columns)
        self.scores = [ScoreColumn.of(*what) for what in self.plugins.scores]
        self.stamped_columns = [score for score in self.scores if score.traits.stamped] if self.stamped else _NOBODY
        if self.plugins.foreign:
            self.untrusted = [score for score in self.scores if not score.traits.trusted]
        for score in self.scores:
            if score.plugin.name in told:
                score.fill(told[score.plugin.name], view.width)
            elif not score.traits.quiet:
                self.ask_score(score, view)
        for plugin in self.stamped:
            for point in ("filter", "score"):
                self.stamps[plugin.name, point] = call_plugin(plugin, plugin.stamp, self.pod, columns, point)
        self.select_usage_plugins()
        self.rebuild_ranks(columns)
        self.feasible_version = self.version
        self.built = True

    def combined_scores(self, view: Nodes) -> Sequence[Any] | None:
        """The scores that rules who read the same numbers give these rows in one go: then none of them refuses any.
        None: they are to be asked one by one."""
        together = self.profile_plugins.combined
        if together is None:
            return None
        try:
            return together.row(self.pod, view) if isinstance(view, OneNode) else together.rows(self.pod, view)
        except FAILURES as error:
            raise plugin_error(self.profile_plugins.combining_plugin, error) from error

    def select_usage_plugins(self) -> None:
        """Which plugins are to be asked again where a placement changed what runs on a row."""
        self.usage_filters = [column for column in self.filters if column.traits.repaired]
        self.usage_scores = [score for score in self.scores if score.traits.repaired and score.active]
        self.usage_scalar = self.plugins.supports_one_node or (
            _scalar(self.usage_filters) and _scalar(self.usage_scores)
        )
        self.usage_extremes = [score for score in self.usage_scores if not score.scale.is_normalized]
        self.usage_together = self._joined(self.profile_plugins.combined_names)

    def _joined(self, names: list[str]) -> bool:
        if [score.plugin.name for score in self.usage_scores] != names:
            return False
        return all([column.plugin.name in names for column in self.usage_filters])  # noqa: C419

    def _concerned(self, plugin: PreFilter, view: Nodes) -> bool:
        """PreFilter: whether this plugin has anything to say about the class."""
        answer = self.prepare(plugin, view)
        if answer is None or isinstance(answer, Skip):
            return answer is None
        if isinstance(answer, PreFilterResult):
            self.node_names += ((plugin.name, answer.names),)
        elif self.rejection is None or self.rejection.code is Code.UNSCHEDULABLE:
            self.rejection = answer
        return True

    def prepare(self, plugin: PreFilter, view: Nodes) -> Skip | PreFilterResult | Verdict | None:
        """What a plugin says of the class as a whole."""
        if self.profile_plugins.traits[plugin.name].trusted:
            return checked_pre_filter(call_plugin(plugin, plugin.pre_filter, self.pod, view), plugin.name)
        return checked_pre_filter(call_plugin(plugin, plugin.pre_filter, self.pod, view.locked()), plugin.name)

    def compute_feasible(self, columns: NodeColumns) -> None:
        """Which rows are feasible, from what the filters said."""
        against: Any = None
        for column in self.filters:
            if column.bits is not None:
                against = column.bits if against is None else against | column.bits
        if against is None:
            ok, self.feasible_count = columns.alive[: columns.size].copy(), columns.count
        else:
            ok = against == _NO_REASON
            if columns.count != columns.size:
                ok &= columns.alive[: columns.size]
            self.feasible_count = int(np.count_nonzero(ok))
        if columns.blocked_count:
            ok &= ~columns.blocked[: columns.size]
            self.feasible_count = int(np.count_nonzero(ok))
        self.feasible = ok
        self.version += 1

    def ask_score(self, score: ScoreColumn, view: Nodes, job: JobView = SINGLE_POD_VIEW) -> None:
        """All rows of one plugin. A plugin that fails makes the attempt fail, not the scheduler."""
        try:
            view.feasible = self.feasible
            raw = score.ask(self.pod, view, job)
            score.active = not isinstance(raw, (Skip, Verdict))
            if score.active:
                score.fill(raw, view.width)
                if not score.traits.trusted:
                    score.measure(self.feasible, self.version)
                    score.verify(self.feasible)
            elif isinstance(raw, Verdict):
                self.score_error = self.score_error or Verdict(raw.code, raw.reasons, score.plugin.name)
        except PluginError as failure:
            score.active = False
            self.score_error = self.score_error or Verdict(Code.ERROR, (failure.problem,), score.plugin.name)

    def verify(self) -> None:
        """Raise if a rule from outside breaks its contract on a row that is feasible now."""
        for score in self.untrusted:
            if score.active:
                score.measure(self.feasible, self.version)
                score.verify(self.feasible)

    # --- sums -----------------------------------------------------------------------------------------------------

    def rebuild_ranks(self, columns: NodeColumns) -> None:
        """Normalise, weigh and add up, on all rows."""
        self.usage_dependent, self._resting, self.uniform_sum = [], [], 0
        for score in self.scores:
            if score.active:
                score.measure(self.feasible, self.version)
                if not score.traits.stamped:
                    self._add_up(score)
        self._sums = None if len(self.usage_dependent) <= _IN_BYTES and _as_they_are(self.usage_dependent) else SUMS
        self.sums_outdated, every = False, slice(0, len(self.feasible))
        self.static_sum = self._rest() if self._resting else None
        rank = self.rank_of(columns, every)
        if self.stamped:
            self.base_rank = rank
            self.add_stamped()
        else:
            self.rank = self._only_feasible(rank)

    def _add_up(self, score: ScoreColumn) -> None:
        """With which others: those that move, those at rest, or those that are the same on all rows."""
        uniform = score.uniform
        score.uniform_score = None if uniform is None else uniform.plugin_score()
        if score.uniform_score is not None:
            self.uniform_sum += score.uniform_score.normalized * score.uniform_score.weight
        elif score.traits.usage:
            self.usage_dependent.append(score)
        else:
            self._resting.append(score)

    def add_stamped(self) -> None:
        """Ranks from the steady part of the sums and the scores that change with every pod placed anywhere."""
        self.stamped_scores = [score for score in self.stamped_columns if score.active]
        rank = self.base_rank
        for score in self.stamped_scores:
            rank = score.values.add_to_ranks(rank)
        self.rank = self._only_feasible(rank.copy() if rank is self.base_rank else rank)

    def resum_rows(self, rows: Set[int]) -> None:
        """The same of a few feasible rows, or of none, when nothing else is added to the others than before."""
        for row in rows:
            self.rank[row] = self.add_stamped_parts(row, self.base_rank.item(row))
        for score in self.stamped_scores:
            score.values.mark_summed()

    def _only_feasible(self, rank: IntColumn) -> IntColumn:
        if FEW * (len(rank) - self.feasible_count) > len(rank):
            np.putmask(rank, ~self.feasible, _NOWHERE)
        elif self.feasible_count != len(rank):
            if self._closed[0] != self.version:
                self._closed = (self.version, (~self.feasible).nonzero()[0])
            rank[self._closed[1]] = INFEASIBLE
        return rank

    def rank_of(self, columns: NodeColumns, rows: Any, fresh: Mapping[ScoreColumn, Any] = MappingProxyType({})) -> Any:
        """The steady part of the sums over some rows, with the rows' lots below it: all but scores that are the same on
        all rows, or change with every pod placed anywhere. `fresh` are raw scores of these rows that are at hand."""
        total, lots = None, self.tie_breaker.for_rows(columns, rows)
        for score in self.usage_dependent:
            part = score.values.part(rows, raw=fresh.get(score))
            total = part if total is None else np.add(total, part, dtype=self._sums)
        if self.static_sum is not None:
            total = self.static_sum[rows] if total is None else np.add(self.static_sum[rows], total, dtype=SUMS)
        if total is None:
            return lots.astype(np.int64)
        rank = total.astype(np.int64)
        rank <<= _SHIFT
        return np.bitwise_or(rank, lots, out=rank)

    def update_static_sum(self, rows: Any) -> None:
        """Nodes changed: what does not follow from what runs there is added up again."""
        if self.static_sum is not None:
            if not self.static_sum.flags.writeable:
                self.static_sum = self.static_sum.copy()
            self.static_sum[rows] = sum(score.values.part(rows) for score in self._resting)

    def _rest(self) -> Any:
        total = None
        for score in self._resting:
            total = score.values.static_part() if total is None else total + score.values.static_part()
        return total

    def add_stamped_parts(self, rows: Any, steady: Any) -> Any:
        """The whole ranks, from their steady part on a row or some."""
        for score in self.stamped_scores:
            values = score.values
            steady = steady + (
                values.part_at(rows) << TIE_BREAK_BITS if isinstance(rows, int) else values.rank_part(rows)
            )
        return steady


def _scalar(columns: Sequence[FilterColumn | ScoreColumn]) -> bool:
    """Whether all can look at a single row as plain numbers."""
    return all(column.traits.supports_one_node for column in columns)


def _as_they_are(scores: list[ScoreColumn]) -> bool:
    """Whether they are added up neither normalised nor weighted."""
    return all([score.scale.is_normalized and score.scale.weight == 1 for score in scores])  # noqa: C419
