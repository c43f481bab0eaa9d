"""Where pods are nominated to a node, a pod must be fine there with them and without; so says the naive twin, too."""

from collections import Counter
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.cycle.nominated import yields
from kubenexus.state.podcolumns import PodColumns
from kubenexus.testing.builders import HOSTNAME, a_node, a_pod
from kubenexus.testing.harness import run
from tests.plugins.dice import Dice, Few
from tests.plugins.judging import BEFORE, Twin, caught, usable
from tests.plugins.naive_affinity import NaiveAffinity, away, means, near, placed
from tests.plugins.naive_spread import NaiveSpread
from tests.plugins.scene import Scene, only

seeds = st.integers(0, 2**32)


def judge(seed: int, plugin: str, twin: Twin) -> Counter[str]:
    """The nodes that are left to each of some pods, by our rules and by the twin's."""
    dice, seen = (Few if plugin == "PodTopologySpread" else Dice)(seed), Counter[str]()
    scene = Scene.of(dice, only(*BEFORE, plugin), steps=3)
    for i in range(4):
        scene.nominated(waiting(dice, f"q{i}", dice.choice(dice.names)))
    for pod in [waiting(dice, f"w{i}") for i in range(8)]:
        columns = scene.ledger.nodes
        table = scene.planner.bench.look(pod, columns).table
        yielding = yields(pod, table, scene.ledger.snapshot())
        rows = set(columns.row_of.values()) if yielding is None else set(columns.row_of.values()) - {*yielding.rows}
        alone = {n for n, node in scene.nodes.items() if usable(pod, node) and not twin.refusal(pod, node, scene)}
        left = {n for n in alone if skipped(twin, pod, scene) or welcome(twin, pod, n, scene)}
        assert {columns.names[row] for row in rows if table.ok[row]} == left, pod
        seen["yields"] += left != alone
        seen["does not"] += left == alone
    return seen


def waiting(dice: Dice, name: str, node: str = "") -> Pod:
    pod = dice.pod(name)
    spec = msgspec.structs.replace(pod.spec, priority=dice.choice([0, 0, 10]))
    return msgspec.structs.replace(pod, spec=spec, status=msgspec.structs.replace(pod.status, nominated_node_name=node))


def welcome(twin: Twin, pod: Pod, node: str, scene: Scene) -> bool:
    return not twin.refusal(pod, scene.nodes[node], scene.with_nominees(pod, node))


def skipped(twin: Twin, pod: Pod, scene: Scene) -> bool:
    """Upstream does not ask about pod affinity at all where neither the pod nor anybody who runs insists on something:
    those who are nominated are then not asked either."""
    if not isinstance(twin, NaiveAffinity) or near(pod).required or away(pod).required:
        return False
    minded = [
        term.topology_key in node.metadata.labels
        for other, node in placed(scene)
        for term in away(other).required
        if means(term, other, pod, scene, strangers=True)
    ]
    return not any(minded)


TWINS: dict[str, Twin] = {"InterPodAffinity": NaiveAffinity(), "PodTopologySpread": NaiveSpread()}


@pytest.mark.parametrize("plugin", TWINS)
@given(seed=seeds)
def test_nominated_pods_are_counted_as_the_twin_counts_them(plugin: str, seed: int) -> None:
    judge(seed, plugin, TWINS[plugin])


@pytest.mark.parametrize("plugin", TWINS)
def test_pods_do_yield(plugin: str) -> None:
    seen: Counter[str] = sum((judge(seed, plugin, TWINS[plugin]) for seed in range(40)), Counter())
    assert seen["yields"] >= 10


def test_what_a_nominated_pod_avoids_counts_whatever_label_it_is_about() -> None:
    """Nobody who runs asks about `app`, so that no class would know its pods' value of it."""
    nodes = [a_node("n1"), a_node("n2")]
    done = run(nodes, [a_pod("front", node="n1", apart=[f"tier=front per {HOSTNAME}"])])
    done.ledger.pod_seen(a_pod("waits", priority=10, nominated="n2", apart=[f"app=web per {HOSTNAME}"]))
    pod = a_pod("p", labels={"tier": "front", "app": "web"})
    sentence = "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
    assert done.then([pod]).refusals == {"p": sentence}
    done.ledger.pod_gone("default/waits")
    assert done.then([pod]).placements == {"p": "n2"}


def test_the_twin_finds_a_rule_that_does_not_know_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PodColumns, "nominated", lambda *_: None)
    assert caught(partial(judge, plugin="InterPodAffinity", twin=NaiveAffinity()), most=200)
