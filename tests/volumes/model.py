"""A ledger and its naive twin, told the same; and our answers in the twin's terms."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Node, Pod
from kubenexus.api.storage import StorageObject
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import code_of
from kubenexus.plan.decide import Planner, commit
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes, OneNode
from tests.volumes import reference
from tests.volumes.builders import only
from tests.volumes.reference import PASS, SKIPPED, TWINS, Answer, World, claims_of


class Model:
    """Benches live as long as the model: their tables are repaired, never made anew."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.world = World()
        self.benches = {name: ClassCache(only(name)) for name in TWINS}
        self.planner = Planner(only(*TWINS))
        self.assumed: set[str] = set()

    def upsert_node(self, node: Node) -> None:
        self.ledger.upsert_node(node)
        self.world.upsert_node(node)

    def remove_node(self, name: str) -> None:
        self.ledger.remove_node(name)
        self.world.remove_node(name)

    def upsert_storage(self, thing: StorageObject) -> None:
        self.ledger.upsert_storage(thing)
        self.world.upsert_storage(thing)

    def remove_storage(self, kind: type, key: str) -> None:
        self.ledger.remove_storage(kind, key)
        self.world.remove_storage(kind, key)

    def bound(self, pod: Pod, node: str) -> None:
        """The API server says that the pod runs on a node, which may be the one we chose."""
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self.ledger.upsert_pod(msgspec.structs.replace(pod, spec=spec))
        if self.world.placed.get(pod.key, (pod, ""))[1] != node:
            self.world.place(pod, node)
        self.assumed.discard(pod.key)

    def gone(self, pod: Pod) -> None:
        self.ledger.remove_pod(pod.key)
        self.world.gone(pod.key)
        self.assumed.discard(pod.key)

    def forget(self, pod: Pod) -> None:
        self.ledger.forget(pod.key)
        if pod.key in self.assumed:
            self.world.gone(pod.key)
            self.assumed.discard(pod.key)

    def schedule(self, pod: Pod) -> None:
        """Decide and commit; what was picked must be what the twin finds on that node."""
        if pod.key in self.world.placed:
            return
        decision = self.planner.decide(Job.of(pod), self.ledger.snapshot(), 0.0)
        if not decision.placed:
            return
        (placement,) = decision.placements
        found = reference.VolumeBinding().find(pod, self.world.nodes[placement.node], self.world)
        assert isinstance(found, reference.Found)
        picked = {position: volume.metadata.name for position, _, volume in found.static}
        picked |= {position: "" for position, _, _ in found.dynamic}
        assert dict(placement.assignment.volumes) == picked
        commit(decision, Job.of(pod), self.ledger, 0.0)
        keys = {position: f"{pod.metadata.namespace}/{name}" for position, _, name, _ in claims_of(pod)}
        self.world.place(pod, placement.node, {keys[position]: volume for position, volume in picked.items()})
        self.assumed.add(pod.key)

    # --- our answers ----------------------------------------------------------------------------------------------

    def compare(self, pod: Pod) -> None:
        for name, twin in TWINS.items():
            before, answers, scores = self._ours(name, pod)
            expected = twin.before(pod, self.world)
            assert before == expected, name
            if expected is None:
                wanted = {n: twin.node(pod, node, self.world) for n, node in self.world.nodes.items()}
                for shown, ours in answers:
                    assert ours == {n: wanted[n] for n in ours}, (name, shown)
                fine = [n for n, answer in wanted.items() if answer == PASS]
                if scores is not None:
                    assert {n: scores[n] for n in fine} == {
                        n: twin.score(pod, self.world.nodes[n], self.world) for n in fine
                    }

    def _ours(self, name: str, pod: Pod) -> tuple[Any, list[tuple[str, dict[str, Answer]]], dict[str, int] | None]:
        columns = self.ledger.nodes
        table = self.benches[name].lookup(pod, columns).table
        rows = list(columns.row_of.values())
        scores = {columns.names[row]: table.scores[0].at(row) for row in rows} if table.scores else None
        if table.rejection is not None:
            return (table.rejection.code, frozenset(table.rejection.reasons)), [], scores
        if not table.filters:
            return SKIPPED, [], scores
        (column,) = table.filters
        views: list[tuple[str, Any, list[int]]] = [("cached", None, rows)]
        views.append(("some", Nodes(columns, np.array(rows[::-2], np.int64)), rows[::-2]))
        if column.traits.supports_one_node:
            views += [("one", OneNode(columns, row), [row]) for row in rows]
        return None, [(shown, self._read(column, table.pod, view, at)) for shown, view, at in views], scores

    def _read(self, column: FilterColumn, pod: Any, view: Any, rows: list[int]) -> dict[str, Answer]:
        if view is None:
            bits = [column.at(row) for row in rows]
        else:
            asked = column.ask(pod, view)
            bits = [asked] * len(rows) if isinstance(asked, int) else [int(each) for each in asked]
        found = {}
        for row, each in zip(rows, bits, strict=True):
            reasons = column.reasons.read(each)
            found[self.ledger.nodes.names[row]] = (code_of(reasons), frozenset(r.text for r in reasons))
        return found
