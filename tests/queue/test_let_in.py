"""Whatever happens in the cluster, an event that lets a waiting pod in is one that wakes it."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.framework.job import Job
from kubenexus.framework.profile import Lineup
from kubenexus.queue.changes import pod_changed
from kubenexus.queue.rules import NOBODY, Rules
from kubenexus.testing.builders import ZONE, a_pod
from tests.plugins.dice import Dice, Few
from tests.plugins.scene import Scene, only
from tests.queue.easy import by_image

HARD_DEFAULTS = {
    "defaultingType": "List",
    "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}],
}
# How likely a waiting pod has constraints of its own, and who judges it.
LINEUPS = {
    "affinity": (0.0, only("InterPodAffinity")),
    "spread": (1.0, only("PodTopologySpread")),
    "spread by the profile": (0.0, only("PodTopologySpread", **HARD_DEFAULTS)),
    "all": (0.5, only("NodeUnschedulable", "TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity")),
}


def let_in(seed: int, own: float, lineup: Lineup) -> Counter[str]:
    """What let waiting pods in, by the event's label; fails if nobody who had refused them would have tried again."""
    dice, rules, heard = Few(seed), Rules.of(lineup, by_image), Counter[str]()
    scene = Scene.of(dice, lineup)
    waiting = [dice.pod(f"w{i}", terms=1.0, constraints=own) for i in range(8)]
    refused = [blamed(scene, pod) for pod in waiting]
    for _ in range(8):
        events = scene.tell(*(dice.node_event() if dice.random() < 0.4 else dice.pod_event()))
        after = [blamed(scene, pod) for pod in waiting] if events else refused
        for pod, by, still in zip(waiting, refused, after, strict=True):
            if by and not still:
                assert any(rules.helps(by, event, [pod]) for event in events), (pod, by, events)
                heard.update(event.label for event in events)
        refused = after
    for pod, by in zip(waiting, refused, strict=True):
        heard.update(own_changes(scene, rules, dice, pod) if by else [])
    return heard


def own_changes(scene: Scene, rules: Rules, dice: Dice, pod: Pod) -> list[str]:
    """The waiting pod itself is given other labels, or tolerates more."""
    by = blamed(scene, pod)
    meta = msgspec.structs.replace(pod.metadata, labels=dice.labels())
    spec = msgspec.structs.replace(
        pod.spec, tolerations=[*pod.spec.tolerations, *a_pod(tolerates=["*"]).spec.tolerations]
    )
    fresh = dice.choice([msgspec.structs.replace(pod, metadata=meta), msgspec.structs.replace(pod, spec=spec)])
    if not by or blamed(scene, fresh):
        return []
    events = pod_changed(pod, fresh, target=True)
    assert any(rules.helps(by, event, [fresh]) for event in events), (pod, fresh, by)
    return [event.label for event in events]


def blamed(scene: Scene, pod: Pod) -> tuple[str, ...]:
    """Who refuses the pod now, if anybody does; where there are no nodes it is nobody we know."""
    decision = scene.planner.decide(Job.of(pod), scene.ledger.snapshot(), 0.0)
    return () if decision.placed or decision.diagnosis is None else decision.diagnosis.refused_by or (NOBODY,)


@pytest.mark.parametrize(("own", "lineup"), LINEUPS.values(), ids=LINEUPS)
@settings(max_examples=settings().max_examples // 2)
@given(seed=st.integers(0, 2**32))
def test_an_event_that_lets_a_pod_in_wakes_it(own: float, lineup: Lineup, seed: int) -> None:
    let_in(seed, own, lineup)


@pytest.mark.parametrize(("own", "lineup"), LINEUPS.values(), ids=LINEUPS)
def test_events_of_all_kinds_let_pods_in(own: float, lineup: Lineup) -> None:
    """The test above looks at something."""
    missing = {"NodeAdd", "NodeUpdateNodeLabel", "TargetPodUpdatePodLabel"}
    if lineup is not LINEUPS["spread by the profile"][1]:
        missing |= {"NodeDelete", "AssignedPodAdd", "AssignedPodDelete", "AssignedPodUpdatePodLabel"}
    for seed in range(400):
        missing -= let_in(seed, own, lineup).keys()
        if not missing:
            break
    assert not missing
