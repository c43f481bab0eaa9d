"""Checks a plugin against a reference: the same rule written for one pod and one node in plain Python.

A plugin processes all nodes at once and its answers are cached, which is fast and easy to get subtly wrong. The
reference looks at one node (`NodeInfo`) and is meant to be obviously right:

    class NoBigPods:                                            # a user's rule ...
        name, reads, depends = "NoBigPods", ("spec.containers",), Depends.USAGE
        def filter(self, pod, nodes, verdict): ...

    class NoBigPodsReference:                                   # ... and its reference
        def filter_one(self, pod: Pod, node: NodeInfo) -> list[tuple[str, Code]]: ...     # [] lets the pod in
        def score_one(self, pod: Pod, node: NodeInfo) -> int | None: ...                  # None: does not apply

    @given(clusters(), pods())                                  # testing.strategies
    def test_no_big_pods(cluster, pod):
        assert_matches_reference(NoBigPods({}), NoBigPodsReference(), pod, cluster)

Either method may be missing; reasons may also be `Reason`s. `NodeInfo` (testing.harness) is a node, its pods and the
rest of the cluster. A reference can also be a whole plugin, such as one in the per-row form of `framework.rowwise`:
then it is called as any plugin is.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.base.errors import Malformed
from kubenexus.framework.extension_points import CodedScores
from kubenexus.framework.job import SINGLE_POD_VIEW
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.pod_signature import PodSigner
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, ReasonTable, Skip, Verdict, code_of
from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode
from kubenexus.testing.harness import CheckedCluster, ReferenceCluster

Refusal = tuple[Code, tuple[str, ...]]
ACCEPTED: Refusal = (Code.SUCCESS, ())
UNLIMITED = 1 << 40  # more capacity than any test has


class Answers(NamedTuple):
    """The answers of a rule by node. `scores` is None if the rule does not apply or the attempt fails."""

    refusals: dict[str, Refusal]
    scores: dict[str, int] | None = None
    failed: bool = False


def assert_matches_reference(
    plugin: Any, reference: Any, pod: Pod, cluster: CheckedCluster, pod_class: PodClass | None = None
) -> None:
    """Raises AssertionError unless plugin and reference agree on every node, for every view: all rows, some, or one.

    `pod_class` is the pod's class, for plugins that read what others sign; without it, it is made for this plugin.
    """
    if not cluster.reference.nodes:
        return
    of_its_own = hasattr(reference, "reads")
    expected = (
        plugin_answers(reference, pod, cluster.ledger)
        if of_its_own
        else reference_answers(reference, pod, cluster.reference)
    )
    for shown, view in _views(plugin, cluster.ledger):
        found = plugin_answers(plugin, pod, cluster.ledger, view, pod_class)
        _compare(plugin.name, "refusals", shown, found.refusals, expected.refusals, hasattr(reference, "filter_one"))
        if hasattr(reference, "score_one"):
            told, wanted = ((a.failed, a.scores or {}, a.scores is None) for a in (found, expected))
            _compare(plugin.name, "scores", shown, told[1], wanted[1], True)
            if (told[0], told[2]) != (wanted[0], wanted[2]):
                raise AssertionError(
                    f"{plugin.name} on {shown}: (fails, skips) is {told[::2]}, its reference's {wanted[::2]}"
                )


def reference_answers(reference: Any, pod: Pod, cluster: ReferenceCluster) -> Answers:
    """Returns the reference's answers, node by node."""
    refusals, scores, failed = {}, {}, False
    for name, info in cluster.infos().items():
        if hasattr(reference, "filter_one"):
            refusals[name] = _refusal(_reasons(reference.filter_one(pod, info)))
        if hasattr(reference, "score_one"):
            try:
                scores[name] = reference.score_one(pod, info)
            except Malformed:
                failed = True
    concerned = not failed and None not in scores.values()
    return Answers(refusals, scores if concerned else None, failed)


def plugin_answers(
    plugin: Any, pod: Pod, ledger: Ledger, view: Nodes | None = None, pod_class: PodClass | None = None
) -> Answers:
    """Returns the plugin's answers over a view, without any cache."""
    view = view or Nodes(ledger.nodes)
    columns, pod_class = ledger.nodes, pod_class or class_of(pod, plugin, ledger.nodes)
    rows = _rows(view, columns.size)
    bits, raw, table = _filtered(plugin, pod_class, view), _scored(plugin, pod_class, view), ReasonTable()
    if isinstance(bits, NodeVerdict):
        table = bits.table
    refusals, scores = {}, {}
    for i, row in enumerate(rows):
        if columns.alive[row]:
            refusals[columns.names[row]] = _refusal(table.read(_at(bits.bits, i) if bits else 0))
            scores[columns.names[row]] = _at(raw, i)
    return Answers(refusals, None if raw is None or isinstance(raw, Verdict) else scores, isinstance(raw, Verdict))


def assert_capacity(plugin: Any, pod: Pod, ledger: Ledger, most: int = 12) -> None:
    """Raises AssertionError unless `capacity` is how many copies of the pod fit on each accepted row."""
    columns, pod_class = ledger.nodes, class_of(pod, plugin, ledger.nodes)
    capacity: IntColumn = np.full(columns.size, UNLIMITED, np.int64)
    plugin.capacity(pod_class, Nodes(columns), capacity)
    accepted = [name for name, said in plugin_answers(plugin, pod, ledger).refusals.items() if said == ACCEPTED]
    for name in accepted:
        row = columns.row_of[name]
        placed = 0
        with ledger.transaction() as transaction:
            while placed < most:
                transaction.place(pod, name, pod_class.footprint)
                placed += 1
                if plugin_answers(plugin, pod, ledger, Nodes(columns, np.array([row]))).refusals[name] != ACCEPTED:
                    break
        if min(int(capacity[row]), most) != placed:
            raise AssertionError(f"{plugin.name}: room on {name} is {capacity[row]}, but {placed} pods go there")


def class_of(pod: Pod, plugin: Any, columns: NodeColumns) -> PodClass:
    """Returns the pod's class as for this plugin alone, with its pins left in."""
    signer = PodSigner(plugin.reads)
    what = plugin.sign(pod, columns) if hasattr(plugin, "sign") else None
    return PodClass(signer.sign(pod), signer.class_pod_of(pod), signed={} if what is None else {plugin.name: what})


def _views(plugin: Any, ledger: Ledger) -> Iterator[tuple[str, Nodes]]:
    columns = ledger.nodes
    yield "all rows", Nodes(columns)
    yield "every other row, backwards", Nodes(columns, np.arange(columns.size)[::-2].copy())
    for row in range(columns.size):
        yield f"row {row}", Nodes(columns, np.array([row]))
        if getattr(plugin, "supports_one_node", False) and columns.alive[row]:
            yield f"row {row} as plain numbers", OneNode(columns, row)


def _rows(view: Nodes, size: int) -> list[int]:
    if isinstance(view, OneNode):
        return [view.row]
    return list(range(size)) if view.rows is None else [int(row) for row in view.rows]


def _filtered(plugin: Any, pod: PodClass, view: Nodes) -> NodeVerdict | None:
    """Returns None if the plugin filters nothing here."""
    if not hasattr(plugin, "filter"):
        return None
    if hasattr(plugin, "pre_filter") and isinstance(plugin.pre_filter(pod, view), Skip):
        return None
    verdict = NodeVerdict(ReasonTable())
    plugin.filter(pod, view, verdict)
    return verdict


def _scored(plugin: Any, pod: PodClass, view: Nodes) -> Any:
    raw = plugin.score(pod, view, SINGLE_POD_VIEW) if hasattr(plugin, "score") else None
    if isinstance(raw, CodedScores):
        return raw.values[raw.codes]
    return None if isinstance(raw, Skip) else raw


def _at(column: Any, i: int) -> int:
    """Returns one value of a column or of a scalar. Floats are truncated, as the runtime does."""
    if column is None or isinstance(column, Verdict):
        return 0
    return int(column) if np.ndim(column) == 0 else int(column[i])


def _reasons(said: Any) -> tuple[Reason, ...]:
    """Converts the reasons of a reference, in any of the allowed forms."""
    if said is None or isinstance(said, Reason):
        return () if said is None else (said,)
    return tuple(each if isinstance(each, Reason) else Reason(*each) for each in said)


def _refusal(reasons: tuple[Reason, ...]) -> Refusal:
    return (code_of(reasons), tuple(sorted(reason.text for reason in reasons))) if reasons else ACCEPTED


def _compare(
    plugin: str, aspect: str, shown: str, found: dict[str, Any], reference: dict[str, Any], asked: bool
) -> None:
    wrong = [
        f"  {n}: {found[n]}, its reference says {reference.get(n)}"
        for n in found
        if asked and found[n] != reference.get(n)
    ]
    if wrong:
        raise AssertionError("\n".join([f"{plugin}'s {aspect} on {shown}:", *wrong]))
