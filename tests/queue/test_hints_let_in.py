"""Whatever happens in the cluster, an event that lets a waiting pod in is one that wakes it."""

from collections import Counter
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.framework.job import Job
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.plugins.inter_pod_affinity import hints as affinity_hints
from kubenexus.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kubenexus.plugins.pod_topology_spread import hints as spread_hints
from kubenexus.plugins.pod_topology_spread.plugin import PodTopologySpread
from kubenexus.queue.object_events import pod_changed
from kubenexus.queue.queue_profile import ANY_PLUGIN, QueueProfile
from kubenexus.testing.builders import ZONE, a_pod
from tests.plugins.checked_cluster import PluginCluster, only
from tests.plugins.oracle_check import caught
from tests.plugins.random_cluster import Few, RandomCluster
from tests.queue.queue_fixture import by_image

HARD_DEFAULTS = {
    "defaultingType": "List",
    "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}],
}
# How likely a waiting pod has constraints of its own, and who judges it.
PROFILES = {
    "affinity": (0.0, only("InterPodAffinity")),
    "spread": (1.0, only("PodTopologySpread")),
    "spread by the profile": (0.0, only("PodTopologySpread", **HARD_DEFAULTS)),
    "all": (0.5, only("NodeUnschedulable", "TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity")),
}


def let_in(seed: int, own: float, profile_plugins: ProfilePlugins) -> Counter[str]:
    """What let waiting pods in, by the event's label; fails if nobody who had refused them would have tried again."""
    dice, profile, heard = Few(seed), QueueProfile.of(profile_plugins, by_image), Counter[str]()
    cluster = PluginCluster.of(dice, profile_plugins)
    waiting = [dice.pod(f"w{i}", terms=1.0, constraints=own) for i in range(8)]
    refused = [blamed(cluster, pod) for pod in waiting]
    for _ in range(8):
        events = cluster.tell(*(dice.node_event() if dice.random() < 0.4 else dice.pod_event()))
        after = [blamed(cluster, pod) for pod in waiting] if events else refused
        for pod, by, still in zip(waiting, refused, after, strict=True):
            if by and not still:
                assert any(profile.may_help(by, event, [pod]) for event in events), (pod, by, events)
                heard.update(event.label for event in events)
        refused = after
    for pod, by in zip(waiting, refused, strict=True):
        heard.update(own_changes(cluster, profile, dice, pod) if by else [])
    return heard


def own_changes(cluster: PluginCluster, profile: QueueProfile, random_cluster: RandomCluster, pod: Pod) -> list[str]:
    """The waiting pod itself is given other labels, or tolerates more."""
    by = blamed(cluster, pod)
    meta = msgspec.structs.replace(pod.metadata, labels=random_cluster.labels())
    spec = msgspec.structs.replace(
        pod.spec, tolerations=[*pod.spec.tolerations, *a_pod(tolerates=["*"]).spec.tolerations]
    )
    fresh = random_cluster.choice(
        [msgspec.structs.replace(pod, metadata=meta), msgspec.structs.replace(pod, spec=spec)]
    )
    if not by or blamed(cluster, fresh):
        return []
    events = pod_changed(pod, fresh, target=True)
    assert any(profile.may_help(by, event, [fresh]) for event in events), (pod, fresh, by)
    return [event.label for event in events]


def blamed(cluster: PluginCluster, pod: Pod) -> tuple[str, ...]:
    """Who refuses the pod now, if anybody does; where there are no nodes it is nobody we know."""
    decision = cluster.planner.decide(Job.of(pod), cluster.ledger.snapshot(), 0.0)
    return () if decision.placed or decision.diagnosis is None else decision.diagnosis.refused_by or (ANY_PLUGIN,)


@pytest.mark.parametrize(("own", "profile_plugins"), PROFILES.values(), ids=PROFILES)
@settings(max_examples=max(25, settings().max_examples // 2))
@given(seed=st.integers(0, 2**32))
def test_an_event_that_lets_a_pod_in_wakes_it(own: float, profile_plugins: ProfilePlugins, seed: int) -> None:
    let_in(seed, own, profile_plugins)


# --- does this test look at anything? ---------------------------------------------------------------------------------

RULES: dict[str, Any] = {"affinity": InterPodAffinity, "spread": PodTopologySpread}


# A random cluster that shows it, if it is none of the first.
SHOWN_BY = {("spread", 0): 17, ("spread", 1): 21}


@pytest.mark.parametrize(
    ("name", "deaf"), [(name, wake) for name in RULES for wake in range(len(RULES[name].events_to_register))]
)
def test_a_rule_that_does_not_hear_of_something_is_found(name: str, deaf: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wakes = RULES[name].events_to_register
    monkeypatch.setattr(RULES[name], "events_to_register", (*wakes[:deaf], *wakes[deaf + 1 :]))
    look = partial(let_in, own=PROFILES[name][0], profile_plugins=PROFILES[name][1])
    assert caught(look, most=400, first=SHOWN_BY.get((name, deaf), 0))


@pytest.mark.parametrize(
    ("name", "owner", "attribute", "answer", "first"),
    [
        pytest.param("affinity", affinity_hints, "_all", lambda wanted, pod: False, 29, id="pods to join"),
        pytest.param("affinity", affinity_hints, "_selects", lambda term, pod: False, 0, id="pods to avoid"),
        pytest.param(
            "spread",
            spread_hints,
            "_counts",
            lambda several, pod, node: [True] * len(several),
            113,
            id="nodes that count",
        ),
        pytest.param("spread", spread_hints, "_shown", lambda pod, other: None, 17, id="pods that count"),
    ],
)
def test_a_hint_that_forgets_something_is_found(
    name: str, owner: Any, attribute: str, answer: Any, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, attribute, answer)
    look = partial(let_in, own=PROFILES[name][0], profile_plugins=PROFILES[name][1])
    assert caught(look, most=400, first=first)
