"""The contract for plugins: what each point is asked, when, and what it must not do.

A plugin looks at every node at once. `nodes` is a view over rows (`state.view.Nodes`); `pod` is a pod class, which
holds only the fields that enabled plugins declared in `reads`. All methods are pure: they read columns and return a
value; they do no I/O, keep no state between calls, and look at no clock.
"""

import enum
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import msgspec

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.job import Assignment, JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import NodeVerdict, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode


class Depends(enum.Flag):
    """What an answer depends on besides the row's own node; it decides when a cached column is repaired."""

    NODE = 0
    USAGE = enum.auto()  # what runs on the row: repaired where a placement touched it
    CLUSTER = enum.auto()  # something about all nodes at once, such as their number: recomputed when it moves
    FEASIBLE = enum.auto()  # which rows are feasible (`nodes.feasible`): asked again when that set changes
    JOB = enum.auto()  # the job's other members: computed anew for each decision


class Plugin(Protocol):
    """What every plugin has. `reads` names the pod fields its answers depend on (see `framework.pod_signature`)."""

    name: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]


@runtime_checkable
class PreEnqueue(Plugin, Protocol):
    def pre_enqueue(self, pod: Pod) -> Verdict | None:
        """Called before a pod may enter the active queue. None lets it in."""


@runtime_checkable
class QueueSort(Plugin, Protocol):
    def sort_key(self, priority: int, since: float) -> tuple[float, ...]:
        """Called when a job is queued: jobs with smaller keys go first."""


@runtime_checkable
class PinsNodes(Plugin, Protocol):
    def node_names(self, pod: Pod) -> frozenset[str] | Verdict | None:
        """The only nodes this very pod may use, by name, or None. Called for each pod, before its class is looked up:
        what is unique by nature (the node of a DaemonSet's pod) stays outside the class."""


@runtime_checkable
class Sign(Plugin, Protocol):
    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        """What else of this very pod the answers depend on, beyond `reads`, given what the cluster asks about now: for
        instance its labels, but only those that some other pod's affinity selects by. Plain data, or None: then the
        plugin has nothing to say or to assign for this pod, and is not asked; its score is left out, or is its class
        attribute `default_score` on every node. Called for each pod; pods that differ in it are different classes, and
        the class has it as `pod.signed[name]`. A plugin with the class attribute `of_volumes = True` is only asked
        about pods that mount a claim or a disk."""


@runtime_checkable
class Stamped(Plugin, Protocol):
    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        """What of the cluster, beyond the rows themselves, the answer at `point` ("filter" or "score") stands on, as
        a cheap value: while it is equal, cached columns hold; when it moves, the plugin is asked about all rows. Such
        a plugin is never asked about single rows, so the stamp has to move when nodes change, too."""


class PreFilterResult(msgspec.Struct, frozen=True, gc=False):
    """`prepare` returns this to restrict the class to some nodes, by name."""

    names: frozenset[str]


@runtime_checkable
class PreFilter(Plugin, Protocol):
    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | PreFilterResult | Verdict | None:
        """PreFilter, called once per decision on a new class, before any `filter`: not concerned (SKIP), only these
        nodes, refused everywhere (a Verdict), or None: go on. A profile may leave it out, so `filter` must not rely on
        it."""


@runtime_checkable
class Filter(Plugin, Protocol):
    depends: ClassVar[Depends]

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        """Reject rows, with a Reason, where this pod cannot run. Reads columns, touches nothing else. Called with all
        rows or with some: each row's answer must not depend on which other rows are shown."""


@runtime_checkable
class Score(Plugin, Protocol):
    depends: ClassVar[Depends]
    normalize: ClassVar["Normalize"]

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> "IntColumn | CodedScores | int | Skip | Verdict":
        """A raw score for each row, any range; an int when it is the same on all. The runtime normalises over the
        feasible rows, weighs and adds. SKIP: adds nothing for this pod. A Verdict (Error) ends the attempt."""


@runtime_checkable
class Capacity(Plugin, Protocol):
    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Lower, in place, how many more pods of this class each row can take. Called by the planner for gangs. A
        filter without `capacity` counts as 0 or 1, and the planner asks it again after each member."""


@runtime_checkable
class Assign(Plugin, Protocol):
    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        """Name the devices, volumes and claims this pod would take on this row. Called for the chosen row only; a
        Verdict sends the planner to the next best row. Applied by journal and ledger, never here."""


@runtime_checkable
class TouchedRows(Plugin, Protocol):
    def touched_rows(self, pod: PodClass, nodes: NodeColumns, before: Any, after: Any) -> Any:
        """The rows whose `filter` answer may have changed between two stamps; None when it may be any. For a Stamped
        plugin that can tell: it is then asked about these rows only."""


class CombinedRule(Protocol):
    """Some rules that read the same numbers of a row, and say all that they have to say of it in one go. A shortcut: it
    says what they (`names`) would say one by one, or None: then they are asked. Called where they would be called: for
    all rows of a new class; for some of them, or one, only if no other rule of the class depends on what runs there."""

    names: Sequence[str]

    def rows(self, pod: PodClass, nodes: Nodes) -> "Sequence[IntColumn] | None":
        """The raw scores that each gives these rows, if none has anything against any of them. The columns belong to
        whoever asked."""

    def row(self, pod: PodClass, node: OneNode) -> Sequence[int] | None:
        """The same of a single row, as plain numbers."""


@runtime_checkable
class Combines(Plugin, Protocol):
    def combine(self, others: Mapping[str, Plugin]) -> CombinedRule | None:
        """How this plugin answers together with others of its profile, by name. Called once, at start-up."""


class CodedScores(msgspec.Struct, gc=False):
    """Scores that take few values: `values[codes[n]]` on row n. The runtime normalises the few values instead of the
    many rows. `key` names the codes: equal keys, equal codes. Nobody writes into the codes but the plugin, when it is
    asked again for the same class: until then whoever got them may keep them. `rows` says how many rows have each code,
    where that is known. `moved_rows` are the rows that moved since `previous_key` was the key, each with its old code
    and its new, in the order in which they did. One object may be given to many classes: in `cache` the runtime keeps
    what it found out for one of them."""

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

    `extremes` reduces the feasible raw scores to a few numbers, `apply` turns raw scores into 0..100 with them. Only
    when the extremes move is a cached column normalised again. `apply_few` does both for some scores as plain numbers,
    and gives the same.
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
    """A plugin's own way to normalise."""
    return Normalize("own", extremes, apply, shown, few)
