"""A single row has the answers that it has among all rows."""

from collections.abc import Callable

import numpy as np
import pytest

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import SINGLE_POD_VIEW
from kubenexus.framework.verdict import NodeVerdict
from kubenexus.plugins import profile_plugins
from kubenexus.plugins.numa.combined import CombinedNumaRule
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode
from kubenexus.testing.harness import Run
from tests.api.numa.builders import GPU, Row, a_numa_pod, an_nrt, guaranteed
from tests.plugins.numa.numa_cluster import GI, PROFILE, a_run
from tests.plugins.numa.test_numa_topology import pod as an_aligned_pod

POLICY = "numa.scheduling.kubenexus.io/policy"


def zone(seed: int, *, memory: bool, gpus: bool) -> dict[str, Row]:
    found: dict[str, Row] = {"cpu": (8, 8 - seed % 2, max(8 - seed % 2 - seed * 5 % 8, 0))}
    if memory:
        found["memory"] = (16 * GI, 15 * GI, (seed * 7 % 16) * GI)
    if gpus:
        found[GPU] = (2, 2, seed % 3)
    return found


def many_nodes() -> Run:
    return a_run(
        *(
            an_nrt(
                [zone(3 * number + part, memory=number % 3 > 0, gpus=number % 2 > 0) for part in range(2 + number % 2)],
                ["single-numa-node", "restricted", "best-effort", "none"][number % 4],
                "pod" if number % 5 else "container",
                name=f"n{number}",
                near=11 + number % 9,
            )
            for number in range(24)
        ),
        others=2,
        gpus=6,
    )


RUN = many_nodes()


def a_pod(seed: int) -> Pod:
    containers = [guaranteed("main", str(1 + seed * 3 % 9), f"{1 + seed * 5 % 20}Gi", seed % 3)]
    if seed % 4 == 3:
        containers.append(guaranteed("second", "2", "2Gi"))
    policy = ["", "best-effort", "single-numa-node", "restricted", "isolated"][seed % 5]
    notes = {POLICY: policy} if policy else {}
    if seed % 6 == 5:
        notes["scheduling.kubenexus.io/numa-affinity-node-id"] = "1"
        notes["scheduling.kubenexus.io/numa-anti-affinity-node-id"] = "0"
    return a_numa_pod(*containers, name=f"p{seed}", annotations=notes)


@pytest.mark.parametrize("seed", range(30))
def test_one_row_among_all_rows(seed: int) -> None:
    columns, plugins = RUN.ledger.nodes, profile_plugins(PROFILE)
    plugin = next(each for each in plugins.filters if each.name == "NUMATopology")
    pod = ClassCache(plugins).lookup(a_pod(seed), columns).table.pod
    everything = NodeVerdict()
    plugin.filter(pod, Nodes(columns), everything)
    scores = plugin.score(pod, Nodes(columns), SINGLE_POD_VIEW)  # type: ignore[attr-defined]
    bits = np.broadcast_to(np.asarray(everything.bits), (columns.size,))
    for row in range(columns.size):
        alone = NodeVerdict()
        node = OneNode(columns, row)
        plugin.filter(pod, node, alone)
        assert {reason.text for reason in alone.table.read(alone.row_bits)} == {
            reason.text for reason in everything.table.read(int(bits[row]))
        }
        assert plugin.score(pod, node, SINGLE_POD_VIEW) == scores[row]  # type: ignore[attr-defined]


def assert_combined(seed: int, columns: NodeColumns) -> None:
    """The rule for a row that changed returns what the plugin returns for it among all rows."""
    plugins = profile_plugins(PROFILE)
    plugin = next(each for each in plugins.filters if each.name == "NUMATopology")
    (rule,) = [each.rule for each in plugins.combined if isinstance(each.rule, CombinedNumaRule)]
    pod = ClassCache(plugins).lookup(a_pod(seed), columns).table.pod
    everything = NodeVerdict()
    plugin.filter(pod, Nodes(columns), everything)
    scores = plugin.score(pod, Nodes(columns), SINGLE_POD_VIEW)  # type: ignore[attr-defined]
    bits = np.broadcast_to(np.asarray(everything.bits), (columns.size,))
    assert rule.concerns(pod)
    for _ in range(2):  # the second time from what is remembered
        for row in range(columns.size):
            found = rule.row(pod, OneNode(columns, row))
            reasons = {reason.text for reason in everything.table.read(int(bits[row]))}
            if reasons:
                assert isinstance(found, dict)
                assert {reason.text for reason in found["NUMATopology"]} == reasons
            else:
                assert found == (scores[row],)


@pytest.mark.parametrize("seed", range(30))
def test_the_rule_for_a_changed_row_is_the_plugin(seed: int) -> None:
    assert_combined(seed, RUN.ledger.nodes)


def contradict(run: Run) -> None:
    for number in range(0, 24, 3):
        run.ledger.contradict_numa(f"n{number}")


def keep_a_numa_node(run: Run) -> None:
    for number in range(3):
        placed = run.then([an_aligned_pod(f"alone-{number}", "1", policy="isolated")]).placements
        assert placed
    assert run.ledger.nodes.numa.kept.any


def forget_states(run: Run) -> None:
    numa = run.ledger.nodes.numa
    before = [numa.states.states[code] for code in numa.codes_of(5)]
    run.then([an_aligned_pod("gone", "1", policy="single-numa-node")])
    run.ledger.remove_pod("default/gone")
    numa._forget_states()
    assert [numa.states.states[code] for code in numa.codes_of(5)] == before
    assert all(numa.codes_of(row) == numa.codes[: len(numa.codes_of(row)), row].tolist() for row in range(24))


@pytest.mark.parametrize("seed", range(0, 30, 3))
@pytest.mark.parametrize("change", [contradict, keep_a_numa_node, forget_states])
def test_the_rule_is_the_plugin_after(change: Callable[[Run], None], seed: int) -> None:
    run = many_nodes()
    assert_combined(seed, run.ledger.nodes)
    change(run)
    assert_combined(seed, run.ledger.nodes)
