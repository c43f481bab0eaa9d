"""A class that was decided before sees what came after: its answer is that of a planner which never saw it.

The fuzz run asks this of one decision in some hundreds; here it is asked of every wish after every kind of change.
"""

from collections.abc import Callable
from typing import Any

import pytest

from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from tests.fuzz.path import Json, Loop, a_node, a_pod


def in_zone(*zones: str) -> Json:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}


def affinity(kind: str, wanted: Any) -> Json:
    return {"affinity": {"nodeAffinity": {f"{kind}DuringSchedulingIgnoredDuringExecution": wanted}}}


def neighbours(kind: str, **term: Any) -> Json:
    wanted = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **term}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [wanted]}}}


def spread(unless: str, key: str = "zone") -> Json:
    selector = {"matchLabels": {"app": "web"}}
    one = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": unless, "labelSelector": selector}
    return {"topologySpreadConstraints": [one]}


WISHES: dict[str, Json] = {
    "none": {},
    "a huge request": {"requests": {"cpu": "9" * 30}},
    "a toleration": {"tolerations": [{"key": "k", "operator": "Exists"}]},
    "a selector": {"nodeSelector": {"zone": "a"}},
    "an affinity": affinity("required", {"nodeSelectorTerms": [in_zone("a")]}),
    "a preference": affinity("preferred", [{"weight": 9, "preference": in_zone("b")}]),
    "an image": {"containers": [{"image": "app:1"}]},
    "a port": {"containers": [{"ports": [{"hostPort": 80}]}]},
    "neighbours": neighbours("podAffinity"),
    "no neighbours": neighbours("podAntiAffinity"),
    "spreading, hard": spread("DoNotSchedule"),
    "spreading, soft": spread("ScheduleAnyway"),
    "spreading by a label no node has": spread("ScheduleAnyway", "nowhere"),
}


def zone(node: Json, name: str) -> Json:
    return {**node, "metadata": {**node["metadata"], "labels": {"zone": name}}}


def nodes(loop: Loop, *names: str, instead_of: str = "") -> None:
    loop.ledger.remove_node(instead_of)
    for name in names:
        loop.node(zone(a_node(name), "c"))


CHANGES: dict[str, Callable[[Loop], Any]] = {
    "a new node": lambda loop: loop.node(zone(a_node("n3"), "b")),
    "many new nodes": lambda loop: nodes(loop, *(f"m{i}" for i in range(100))),
    "a node less": lambda loop: loop.ledger.remove_node("n1"),
    "another node in its row": lambda loop: nodes(loop, "n4", instead_of="n1"),
    "other labels": lambda loop: loop.node(zone(a_node("n1"), "b")),
    "a taint": lambda loop: loop.node({**a_node("n1"), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
    "less room": lambda loop: loop.node(a_node("n1", cpu="0")),
    "a resource nobody had": lambda loop: loop.node(a_node("n1", **{"example.com/x": 3})),
    "a pod more": lambda loop: loop.pod(a_pod("other", node="n2")),
    "a fence": lambda loop: loop.pod(a_pod("bad", requests={"cpu": "x"}, node="n1")),
    "no node left": lambda loop: (loop.ledger.remove_node("n1"), loop.ledger.remove_node("n2")),
}


def labelled(name: str, wish: Json, node: str = "") -> Json:
    pod = a_pod(name, node=node, **wish)
    return {**pod, "metadata": {**pod["metadata"], "labels": {"app": "web"}}}


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_known_class_answers_as_an_unknown_one_would(wish: str, change: str) -> None:
    loop = Loop(a_node("n1"), zone(a_node("n2"), "b"))
    for i in range(2):
        loop.pod(labelled(f"before-{i}", WISHES[wish]))
        loop.decide(f"before-{i}")
    CHANGES[change](loop)
    for i in range(2):
        loop.pod(labelled(f"after-{i}", WISHES[wish]))
        job = Job.of(loop.waiting[f"ns/after-{i}"])
        afresh = Planner(loop.planner.profile_plugins).decide(job, loop.ledger.snapshot(), 0.0)
        assert loop.decide(f"after-{i}") == afresh


def test_the_cache_of_classes_counts_what_hostile_ones_really_hold() -> None:
    """A pod may bring a megabyte of terms. Counted by its rows alone, such a class would look like nothing at all."""
    loop = Loop()
    loop.planner = Planner(profile_plugins(), ClassCache(profile_plugins(), cache_bytes=1 << 20))
    for number in range(40):
        terms = [in_zone(f"{number}-{i}") for i in range(2000)]
        loop.pod(a_pod(f"p{number}", **affinity("required", {"nodeSelectorTerms": terms})))
        assert not loop.decide(f"p{number}").placed
    assert len(loop.planner.class_cache) <= 20
