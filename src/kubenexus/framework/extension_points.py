"""The plugin contract: the extension points, when the runtime calls each one, and what its result means.

A plugin is a class with the class attributes of `Plugin` and the methods of at least one protocol of this module. The
runtime makes one instance for each profile that enables it, at start-up, with its `pluginConfig` as the only argument.
The points are kube-scheduler's, but a method gets all nodes at once instead of one at a time:

    pod      the pod class: the fields that enabled plugins declare in `reads`, and no others
    nodes    a view over rows of nodes (`state.view.Nodes`); each method returns or writes one value for each row
    columns  where a method gets `NodeColumns`, these are all rows of the cluster

All methods run on the thread that decides for all tenants, and are pure: they read columns and return a value. They
must not block, do I/O, read a clock, write into a column, or keep state between calls. A plugin that raises, or returns
something else than its contract says, fails the attempt of that job with an error that names the plugin. The runtime
checks the results of all plugins but the built-in ones.

Optional attributes, of the class or the instance:

    events_to_register  the cluster events that may make a pod schedulable again that this plugin refused, as a tuple of
                        `ClusterEventWithHint`. Without it every event does
    depends             what a result depends on besides the node itself (`Depends`); required for `filter`, `score`
    filter_depends      the same for `filter`, where that depends on less than `score`
    supports_one_node   True: `filter` and `score` also take a `OneNode`, a single row as plain numbers
    default_score       with `sign`: the raw score on every node for pods that it returns None for
    signs_template      with `sign`, for built-in plugins only: True: it reads the pod's spec, the kinds of its owners,
                        its tenant, labels and annotations with keys of the registry, and whether nodes report NUMA
                        nodes, but nothing else. The runtime calls it once for all pods of a template
                        (`cycle.template_signatures`)
    volumes_only        with `sign`: True: the runtime calls it only for pods that mount a claim or a disk
    depends_on_owners   True: `filter` may refuse a node because of the Services and controllers that select the pod.
                        The queue then signs waiting pods again when those change
"""

import enum
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeGuard, TypeVar, runtime_checkable

import msgspec

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.job import Assignment, JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import NodeVerdict, Reason, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

Point = TypeVar("Point")


def implements(plugin: object, point: type[Point]) -> TypeGuard[Point]:
    """Whether the plugin has all members of an extension point. Python 3.11's isinstance looks for the members again in
    each call: building the plugins of a profile took 8 ms instead of 1."""
    return all(hasattr(plugin, name) for name in _members(point))  # type: ignore[arg-type]  # classes are hashable


@functools.cache
def _members(point: type) -> frozenset[str]:
    protocols = [each for each in point.__mro__ if getattr(each, "_is_protocol", False) and each is not Protocol]
    names = {name for each in protocols for name in (*vars(each), *vars(each).get("__annotations__", ()))}
    return frozenset(name for name in names if not name.startswith("_"))


class Depends(enum.Flag):
    """What the result for a row depends on besides the row's own node. It decides when a cached column is repaired."""

    NODE = 0
    USAGE = enum.auto()  # the pods on the row: recomputed where a placement touched it
    CLUSTER = enum.auto()  # all nodes together, such as their number: recomputed when that changes
    FEASIBLE = enum.auto()  # which rows are feasible (`nodes.feasible`): recomputed when that set changes
    DEMAND = enum.auto()  # what pods are expected to ask for (`nodes.columns.demand`): recomputed when that is set
    JOB = enum.auto()  # the job's other members: recomputed for each decision of a job that has some (`JobView`)


class Plugin(Protocol):
    """What every plugin has. `name` is the name in configurations, events and metrics. `reads` are the pod fields that
    its results depend on (`framework.pod_signature.FIELDS`): any other field has its default in `pod`."""

    name: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]


@runtime_checkable
class PreEnqueue(Plugin, Protocol):
    """Keeps pods out of the active queue, such as those with scheduling gates."""

    def pre_enqueue(self, pod: Pod) -> Verdict | None:
        """Called by the queue for each pod of a job: before the job enters the active queue, and again before each
        attempt. It must be cheap.

        None admits the pod. A Verdict gates the whole job, until one of `events_to_register` comes or the pod changes.
        """


@runtime_checkable
class QueueSort(Plugin, Protocol):
    """Orders the queue. A profile has one."""

    def sort_key(self, priority: int, since: float) -> tuple[float, ...]:
        """Called by the queue when a job is queued, with the priority of the job and the time since which it waits.

        Returns numbers, always equally many. Jobs with smaller keys go first, and equal keys in order of arrival.
        """


@runtime_checkable
class PinsNodes(Plugin, Protocol):
    """Restricts a single pod, rather than its class, to some nodes."""

    def node_names(self, pod: Pod) -> frozenset[str] | Verdict | None:
        """Called for each pod that has an affinity, when its class is known. So what is unique to a pod (the node of a
        DaemonSet's pod) stays outside its class.

        Returns the names of the only nodes the pod may use, None for no restriction, or a Verdict that refuses the pod.
        """


@runtime_checkable
class Sign(Plugin, Protocol):
    """Adds to a pod's class what `reads` cannot express. A plugin may do this alone, for others to read."""

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        """Called for each pod, in the queue and in a decision: it must be cheap. It gets the pod itself.

        Returns plain data that the plugin's results depend on beyond `reads`: for instance those labels of the pod that
        some other pod's affinity selects by. Pods with different data are different classes; the class has the data as
        `pod.signed[name]`.

        None: the plugin neither refuses a node to this pod nor assigns anything. The runtime then calls none of its
        other methods for the class, and its score is `default_score` or nothing.
        """


@runtime_checkable
class SignsTemplateAndPod(Sign, Protocol):
    """A plugin with `signs_template` that also signs what differs between the pods of a template."""

    def sign_template(self, pod: Pod, nodes: NodeColumns) -> Any:
        """Called once for all pods of a template. Returns what they have in common, or None as `sign` does."""

    def sign_pod(self, pod: Pod, nodes: NodeColumns, template: Any) -> Any:
        """Called for each pod with what `sign_template` returned, unless that was None. Returns what `sign` returns."""


@runtime_checkable
class IgnoresUsage(Sign, Protocol):
    """A plugin whose results depend on usage for some classes only."""

    def ignores_usage(self, signed: Any) -> bool:
        """Called for each new class, with what `sign` returned.

        True: the results for this class do not depend on the pods of a row, so that the runtime does not call the
        plugin again where a pod was placed.
        """


@runtime_checkable
class Stamped(Plugin, Protocol):
    """A plugin whose results depend on other rows, such as the pods in a row's zone."""

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        """Called in each decision, for `point` "filter" and "score", to find out whether cached columns still hold.

        Returns a cheap value. While it is equal, the runtime keeps the columns; when it differs, it calls `filter` or
        `score` for all rows. The runtime never calls such a plugin for the rows that changed alone, so the stamp must
        differ when nodes change, too.
        """


@runtime_checkable
class ReportsWork(Plugin, Protocol):
    """A plugin that is built in, and whose work depends on more than the number of rows."""

    def take_work(self) -> int:
        """Called in each decision. Returns the work since the last call, in rows of other plugins that cost as much:
        half a microsecond. It counts towards the limits on gangs and on bursts of decisions."""


@runtime_checkable
class TouchedRows(Plugin, Protocol):
    """A Stamped plugin that can name the rows that a new stamp affects."""

    def touched_rows(self, pod: PodClass, nodes: NodeColumns, before: Any, after: Any) -> Any:
        """Called when the stamp of "filter" moved from `before` to `after`.

        Returns the rows whose `filter` result may have changed, and the runtime calls `filter` for those only. None:
        all rows.
        """


class PreFilterResult(msgspec.Struct, frozen=True, gc=False):
    """Returned by `pre_filter` to restrict a class to some nodes, by name."""

    names: frozenset[str]


@runtime_checkable
class PreFilter(Plugin, Protocol):
    """Looks at a class before any node is filtered."""

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | PreFilterResult | Verdict | None:
        """Called once when the table of a class is built, before any `filter`. A profile may disable this point alone,
        so `filter` must not rely on it.

        None goes on. SKIP leaves out the `filter` of this plugin for the class. A PreFilterResult restricts the class
        to some nodes. A Verdict refuses the class on all nodes.
        """


@runtime_checkable
class Filter(Plugin, Protocol):
    """Refuses nodes."""

    depends: ClassVar[Depends]

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        """Called with all rows for a new class, later with the rows that changed. The result for a row must not depend
        on which other rows are in the view.

        Calls `verdict.reject(mask, reason)` for rows where the pod cannot run. The code of the Reason says whether
        preemption could help (UNSCHEDULABLE) or not (UNRESOLVABLE); ERROR fails the attempt.
        """


@runtime_checkable
class Score(Plugin, Protocol):
    """Ranks the nodes that are feasible."""

    depends: ClassVar[Depends]
    normalize: ClassVar["Normalize"]

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> "IntColumn | CodedScores | int | Skip | Verdict":
        """Called as `filter` is, after it, also for rows that are not feasible.

        Returns a raw score for each row, of any range, or an int that counts for all rows. The runtime normalises the
        scores of the feasible rows by `normalize`, multiplies them by the plugin's weight and adds them up. SKIP adds
        nothing for this class. A Verdict fails the attempt.
        """


@runtime_checkable
class Capacity(Plugin, Protocol):
    """A Filter that can count how many pods of a class a node takes."""

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Called by the gang planner, with the number of further pods of this class that each row can take.

        Lowers the numbers in place, and must not raise any. For a filter without this method a row takes 0 or 1, and
        the planner calls `filter` again after each member.
        """


@runtime_checkable
class Assign(Plugin, Protocol):
    """Chooses what a pod takes on its node besides resources: devices, and volumes for its claims."""

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        """Called for the chosen row only. It must not apply the result: the transaction and the ledger do so.

        An Assignment is added to those of other plugins. A Verdict refuses the row, and the planner goes on with the
        next best one.
        """


@runtime_checkable
class AssignMembers(Assign, Protocol):
    """An Assign that can serve several members of a gang on one row at once."""

    def assign_members(self, pod: PodClass, row: int, nodes: Nodes, members: int) -> list[Assignment] | Verdict:
        """Called by the gang planner for members that were counted (`capacity`), before any of them is placed.

        Returns an Assignment for each, which together take nothing twice. A Verdict, if that is not possible: the
        planner then places the members of the gang one by one. A plugin with `assign` alone makes it do so always.
        """


@runtime_checkable
class AssignTogether(Assign, Protocol):
    """An Assign that can choose for several members of a gang on one row together, of one class or several."""

    def assign_together(self, pods: Sequence[PodClass], row: int, nodes: Nodes) -> list[Assignment] | Verdict:
        """Called by the gang planner when a member finds no row, because members before it took what it needs.

        None of the pods holds anything there now. Returns an Assignment for each, which together take nothing twice, or
        a Verdict if that is not possible. What other plugins assigned to the members stays.
        """


@runtime_checkable
class DescribesNeed(Assign, Protocol):
    """An Assign that can say what a pod needs of a single node, where amounts of resources do not tell it."""

    def node_need(self, pod: PodClass) -> str:
        """Called for a gang that was refused. Returns `4 free GPUs joined by NVLink`, or "" if amounts tell all."""


RowRefusals = dict[str, tuple[Reason, ...]]  # the reasons against one row, by plugin


class CombinedRule(Protocol):
    """Several plugins (`names`) that read the same numbers of a row, computed together.

    A fast path: it returns what the plugins would return one by one, or None, and then the runtime calls them one by
    one. The runtime uses it for all rows of a new class, and for changed rows. No plugin is in two rules.
    """

    names: Sequence[str]

    def concerns(self, pod: PodClass) -> bool:
        """Returns whether the rule ever computes something for the class."""

    def rows(self, pod: PodClass, nodes: Nodes) -> "Sequence[IntColumn] | None":
        """Returns the raw scores of each plugin for these rows, or None if one of them refuses a row. A plugin that
        only filters has any number. The caller owns the columns."""

    def row(self, pod: PodClass, node: OneNode) -> "Sequence[int] | RowRefusals | None":
        """The same for a single row, as plain numbers. A rule may also return why plugins refuse the row."""


@runtime_checkable
class Combines(Plugin, Protocol):
    """A plugin that has a CombinedRule with others."""

    def combine(self, others: Mapping[str, Plugin]) -> CombinedRule | None:
        """Called once, at start-up, with all plugins of the profile by name. None: there is nothing to combine."""


class CodedScores(msgspec.Struct, gc=False):
    """Raw scores that have few different values: `values[codes[n]]` is that of row n.

    The runtime normalises the few values instead of the many rows. `key` identifies the codes: equal keys mean equal
    codes. Only the plugin may write into the codes, and only when it is called again for the same class; until then the
    runtime keeps them. `rows` is how many rows have each code, where that is known. `moved_rows` are the rows whose
    code changed since `previous_key`, each with its old and its new code, in order. One object may be returned for
    many classes: the runtime keeps in `cache` what it computed for one of them.
    """

    codes: Any
    values: Any
    key: Hashable = None
    rows: Any = None
    cache: Any = None
    previous_key: Hashable = None
    moved_rows: Sequence[tuple[int, int, int]] = ()


Few = Callable[[list[int]], tuple[tuple[int, ...], list[int]]]


class Normalize(msgspec.Struct, frozen=True):
    """How raw scores become 0..100 over the feasible rows.

    `extremes` reduces the feasible raw scores to a few numbers, and `apply` turns raw scores into 0..100 with them. The
    runtime normalises a cached column again only when its extremes change. `apply_few` does both for some scores as
    plain numbers, with the same result.
    """

    name: str
    extremes: Callable[[IntColumn], tuple[int, ...]] | None = None
    apply: Callable[[Any, tuple[int, ...]], Any] | None = None
    displayed: Callable[[int], int] = int  # the raw score as explanations show it
    apply_few: Few | None = None


def _top(raw: IntColumn) -> tuple[int, ...]:
    return (int(raw.max(initial=0)),)


def _up(raw: Any, extremes: tuple[int, ...]) -> Any:
    return 100 * raw // extremes[0] if extremes[0] else raw


def _down(raw: Any, extremes: tuple[int, ...]) -> Any:
    return 100 - 100 * raw // extremes[0] if extremes[0] else raw * 0 + 100


AS_IS = Normalize("keep")  # already 0..100
HIGHER_IS_BETTER = Normalize("up", _top, _up)  # the largest becomes 100
LOWER_IS_BETTER = Normalize("down", _top, _down)  # 0 becomes 100, the largest 0


def custom_normalize(
    extremes: Callable[[IntColumn], tuple[int, ...]],
    apply: Callable[[Any, tuple[int, ...]], Any],
    shown: Callable[[int], int] = int,
    few: Few | None = None,
) -> Normalize:
    """Returns a normalisation of the plugin's own."""
    return Normalize("own", extremes, apply, shown, few)
