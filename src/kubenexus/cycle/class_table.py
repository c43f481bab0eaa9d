"""The table of one pod class: for every row, whether the pod can run there, and its rank.

The first decision of a class calls every plugin for all rows (`ClassTable.build`). After that `repair` calls plugins
only for rows that changed: for a placement those that depend on usage, for a changed node all. Sums of all rows are
computed again only if the extremes of a normalisation moved. `WorkCounter` counts the rows, and tests compare its
figures with what changed.
"""

from collections import Counter
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.cycle.feasibility import Feasibility
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.cycle.rank_sums import RowSums, StampedSums
from kubenexus.cycle.scores.column import ScoreColumn
from kubenexus.cycle.tie_break import TieBreaker
from kubenexus.cycle.usage_columns import ColumnGroup, UsageColumns, usage_columns
from kubenexus.framework.decision import Diagnosis
from kubenexus.framework.extension_points import PreFilter, PreFilterResult
from kubenexus.framework.job import SINGLE_POD_VIEW, JobView
from kubenexus.framework.plugin_results import PluginError, call_plugin, checked_pre_filter
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.profile import ClassPlugins, ProfilePlugins
from kubenexus.framework.verdict import Code, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

_NO_RANKS: IntColumn = np.zeros(0, np.int64)


class WorkCounter:
    """How many rows were computed, over all tables of a `ClassCache`. Tests and benchmarks read it.

    `rows` counts rows computed because they changed, `beyond` those computed because a stamp moved, and `reported` is
    what plugins report beyond that, in rows that would cost as much. `failures` counts decisions that a plugin failed,
    by its name.
    """

    __slots__ = ("beyond", "builds", "failures", "reported", "rows")

    def __init__(self) -> None:
        self.rows = self.beyond = self.builds = self.reported = 0
        self.failures: Counter[str] = Counter()


class ClassTable(msgspec.Struct, gc=False, eq=False, kw_only=True):
    """What the plugins of a profile returned for one class, and the ranks that follow from it.

    A decision reads `feasible` and `rank`. A rank is the total score above the row's tie-break number (see
    `tie_break`), or INFEASIBLE. `rejection` is set if a plugin refused the whole class. `score_error` is set if scoring
    failed.
    """

    pod: PodClass
    profile_plugins: ProfilePlugins
    plugins: ClassPlugins
    tie_breaker: TieBreaker
    work: WorkCounter
    stamped: StampedSums
    filters: list[FilterColumn] = []
    scores: list[ScoreColumn] = []
    untrusted: list[ScoreColumn] = []  # scores of plugins that are not built in
    usage: UsageColumns = msgspec.field(default_factory=UsageColumns)
    sums: RowSums = msgspec.field(default_factory=RowSums)
    feasibility: Feasibility = msgspec.field(default_factory=Feasibility)
    rank: IntColumn = _NO_RANKS
    node_names: tuple[tuple[str, frozenset[str]], ...] = ()  # by plugin: the only nodes that it allows the class
    rejection: Verdict | None = None
    score_error: Verdict | None = None
    built: bool = False
    for_members: bool = False  # whether scores are those for a job with other members (`repair.refresh_for_job`)
    marks: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)  # of the change logs and versions, as of the last refresh
    cached_diagnosis: tuple[tuple[int, int], Diagnosis] | None = None

    @classmethod
    def of(cls, pod: PodClass, profile_plugins: ProfilePlugins, work: WorkCounter) -> "ClassTable":
        """Returns a table that is not built yet. `repair.refresh` builds it."""
        profile, plugins = profile_plugins.profile, profile_plugins.for_class(pod.signed)
        return cls(
            pod=pod,
            profile_plugins=profile_plugins,
            plugins=plugins,
            tie_breaker=TieBreaker(profile.tie_break, profile.seed, pod.signature),
            work=work,
            stamped=StampedSums(plugins.stamped),
        )

    @property
    def feasible(self) -> BoolColumn:
        """Whether the pod can run there, for each row."""
        return self.feasibility.rows

    @property
    def feasible_count(self) -> int:
        """The number of feasible rows."""
        return self.feasibility.count

    @property
    def version(self) -> int:
        """Moves when the set of feasible rows or a reason against a row moves."""
        return self.feasibility.version

    @property
    def may_fail(self) -> bool:
        """Whether some filter gave a reason that is an error. Such a reason ends the attempt, on any row."""
        for column in self.filters:  # noqa: SIM110  # a generator takes longer, and every decision reads this
            if column.reasons.failing:
                return True
        return False

    # --- all rows -----------------------------------------------------------------------------------------------------

    def build(self, columns: NodeColumns) -> None:
        """Calls every plugin for every row."""
        self.work.builds += 1
        self.work.rows += columns.size
        view = Nodes(columns)
        self.node_names, self.rejection, self.score_error = (), None, None
        skipped = [plugin.name for plugin in self.plugins.pre_filter if not self._concerned(plugin, view)]
        self.filters = [
            FilterColumn(plugin, traits) for plugin, traits in self.plugins.filters if plugin.name not in skipped
        ]
        combined = self._combined(view)
        for column in self.filters:
            if column.plugin.name not in combined:
                column.fill(column.ask(self.pod, view))
        self.feasibility.compute(self.filters, columns)
        self._build_scores(view, combined)
        for plugin in self.stamped.plugins:
            for point in ("filter", "score"):
                self.stamped.stamps[plugin.name, point] = call_plugin(plugin, plugin.stamp, self.pod, columns, point)
        self.select_usage_columns()
        self.rebuild_ranks(columns)
        self.stamped.feasible_version = self.version
        self.built = True

    def _build_scores(self, view: Nodes, combined: dict[str, Any]) -> None:
        self.scores = [ScoreColumn.of(*what) for what in self.plugins.scores]
        if self.stamped.plugins:
            self.stamped.columns = [score for score in self.scores if score.traits.stamped]
        if self.plugins.foreign:
            self.untrusted = [score for score in self.scores if not score.traits.trusted]
        for score in self.scores:
            if score.plugin.name in combined:
                score.fill(combined[score.plugin.name], view.width)
            elif not score.traits.quiet:
                self.ask_score(score, view)

    def _combined(self, view: Nodes) -> dict[str, Any]:
        """Returns the scores that the profile's CombinedRules compute for all rows, by plugin."""
        found: dict[str, Any] = {}
        for each in self.profile_plugins.combined:
            if each.rule.concerns(self.pod):
                found |= zip(each.rule.names, ColumnGroup([], [], each).ask(self.pod, view) or (), strict=False)
        return found

    def select_usage_columns(self) -> None:
        """Selects the columns that depend on usage, after a score became active or inactive."""
        self.usage = usage_columns(
            self.pod,
            self.filters,
            self.scores,
            self.profile_plugins.combined,
            supports_one_node=self.plugins.supports_one_node,
        )

    def _concerned(self, plugin: PreFilter, view: Nodes) -> bool:
        """Calls PreFilter. Returns whether the plugin's `filter` is to be called for the class."""
        answer = self.pre_filter(plugin, view)
        if answer is None or isinstance(answer, Skip):
            return answer is None
        if isinstance(answer, PreFilterResult):
            self.node_names += ((plugin.name, answer.names),)
        elif self.rejection is None or self.rejection.code is Code.UNSCHEDULABLE:
            self.rejection = answer
        return True

    def pre_filter(self, plugin: PreFilter, view: Nodes) -> Skip | PreFilterResult | Verdict | None:
        """Returns what a plugin's PreFilter returns for the class."""
        if not self.profile_plugins.traits[plugin.name].trusted:
            view = view.locked()
        return checked_pre_filter(call_plugin(plugin, plugin.pre_filter, self.pod, view), plugin.name)

    def ask_score(self, score: ScoreColumn, view: Nodes, job: JobView = SINGLE_POD_VIEW) -> None:
        """Calls one Score plugin for all rows. If it fails, `score_error` fails the attempt."""
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
        """Raises PluginError if a plugin that is not built in breaks its contract on a row that is feasible now."""
        for score in self.untrusted:
            if score.active:
                score.measure(self.feasible, self.version)
                score.verify(self.feasible)

    # --- sums ---------------------------------------------------------------------------------------------------------

    def rebuild_ranks(self, columns: NodeColumns) -> None:
        """Normalises, weighs and adds up the scores of all rows."""
        active = [score for score in self.scores if score.active]
        for score in active:
            score.measure(self.feasible, self.version)
        self.sums.sort([score for score in active if not score.traits.stamped])
        rank = self.rank_rows(columns, slice(0, len(self.feasible)))
        if self.stamped.plugins:
            self.stamped.base_rank = rank
            self.rebuild_stamped_ranks()
        else:
            self.rank = self.feasibility.hide_infeasible(rank)

    def rebuild_stamped_ranks(self) -> None:
        """Adds the stamped scores of all rows to `base_rank` again."""
        self.rank = self.feasibility.hide_infeasible(self.stamped.ranks())

    def rank_rows(self, columns: NodeColumns, rows: Any) -> IntColumn:
        """Returns the ranks of some rows, without the stamped scores."""
        return self.sums.ranks(rows, self.tie_breaker.for_rows(columns, rows))
