"""A plugin from outside that misbehaves for one pod: the pod's event names it, and all other pods go on.

Every point, and every way to misbehave there. `odd` is the pod (or gang) for which the plugin is wrong, for a while.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import (
    AS_IS,
    CodedScores,
    Depends,
    Normalize,
    PreFilterResult,
    custom_normalize,
)
from kubenexus.framework.job import Assignment
from kubenexus.framework.member_constraints import MemberConstraint
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, Verdict
from kubenexus.sim.virtual.loop import run
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import LEAST, NAME
from tests.app.scheduler_fixture import SchedulerFixture

ODD = "3"  # cpu that only the odd pod asks for
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Foreign}]}}
"""
SORTING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Foreign}]}
    queueSort: {enabled: [{name: Foreign}], disabled: [{name: PrioritySort}]}
"""

Way = Callable[..., Any]


def raising(error: BaseException) -> Way:
    def misbehave(*_: Any) -> Any:
        raise error

    return misbehave


def returning(answer: Any) -> Way:
    return lambda *_: answer


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError("not even its name")


RAISES = {
    "raises": raising(ZeroDivisionError("half a node")),
    "exits": raising(SystemExit(3)),
    "cancels": raising(asyncio.CancelledError()),
    "recurses": raising(RecursionError("deep")),
    "runs out of memory": raising(MemoryError()),
}
NO_VERDICTS = {
    "a word": returning("no"),
    "a number": returning(5),
    "True": returning(True),
    "something that cannot be shown": returning(Shy()),
    "NaN": returning(math.nan),
    "a column": returning(np.zeros(3)),
    "a code": returning(Code.UNSCHEDULABLE),
    "a verdict without a code": returning(Verdict("no")),  # type: ignore[arg-type]
    "a verdict whose reason is no text": returning(Verdict(Code.UNSCHEDULABLE, (5,))),  # type: ignore[arg-type]
    "a verdict whose reasons are a word": returning(Verdict(Code.UNSCHEDULABLE, "no")),  # type: ignore[arg-type]
    "a verdict that waits": returning(Verdict(Code.WAIT)),
}
NAMES = {
    "names in a list": returning(["n1"]),
    "names that are numbers": returning({1, 2}),
}
SCORES = {
    "NaN for a node": lambda pod, nodes, job: np.full(nodes.width, np.nan),
    "a number that no int64 holds": lambda pod, nodes, job: [10**30] * nodes.width,
    "a row too few": lambda pod, nodes, job: np.zeros(nodes.width - 1),
    "codes beyond all values": lambda pod, nodes, job: CodedScores(np.full(nodes.width, 9), np.zeros(2)),
    "codes that are words": lambda pod, nodes, job: CodedScores("codes", "values"),
    "a verdict that says success": returning(Verdict(Code.SUCCESS)),
    "writes into what is used": lambda pod, nodes, job: nodes.used("cpu").fill(0),
    "writes into what is feasible": lambda pod, nodes, job: nodes.feasible.fill(True),
}
FILTERS = {
    "writes into what a node has": lambda pod, nodes, verdict: nodes.alloc("cpu").fill(0),
    "refuses with a word": lambda pod, nodes, verdict: verdict.reject(np.ones(nodes.width, bool), "no"),
    "refuses without a text": lambda pod, nodes, verdict: verdict.reject(np.ones(nodes.width, bool), Reason(5)),  # type: ignore[arg-type]
    "refuses with success": lambda pod, nodes, verdict: verdict.reject(
        np.ones(nodes.width, bool), Reason("x", Code.SUCCESS)
    ),
    "refuses by numbers": lambda pod, nodes, verdict: verdict.reject(np.full(nodes.width, 7), Reason("x")),
    "refuses too many rows": lambda pod, nodes, verdict: verdict.reject(np.ones(nodes.width + 1, bool), Reason("x")),
    "refuses a table": lambda pod, nodes, verdict: verdict.reject(np.ones((nodes.width, 2), bool), Reason("x")),
    "writes a word": lambda pod, nodes, verdict: setattr(verdict, "bits", "no"),
    "writes reasons that are none": lambda pod, nodes, verdict: setattr(verdict, "table", ["no"]),
}
NORMALIZES = {
    "a row too few": lambda raw, extremes: raw[:-1],
    "words": lambda raw, extremes: ["a"] * len(raw),
    "NaN": lambda raw, extremes: raw * np.nan,
    "above 100": lambda raw, extremes: raw + 1000,
    "a single number": returning(5),
    "so large that no int64 holds it": lambda raw, extremes: [10**30] * len(raw),
}
EXTREMES = {
    "a list": returning([1]),
    "a column": returning(np.zeros(3)),
    "NaN": returning((math.nan,)),
    "words": returning(("a",)),
}
ROOMS = {
    "raises the room": lambda pod, nodes, room: room.fill(1 << 40),
    "makes it negative": lambda pod, nodes, room: room.fill(-1),
}
ASSIGNS = {
    "nothing": returning(None),
    "a dict": returning({"gpu": 1}),
    "takes that are none": returning(Assignment(device_shares=({"slot": 0},))),  # type: ignore[arg-type]
    "a take of a number": returning(Assignment(device_shares=(DeviceShare(0),))),  # type: ignore[arg-type]
    "a huge take": returning(Assignment(device_shares=(DeviceShare("gpu-0", 10**30),))),
    "takes that are no tuple": returning(Assignment(device_shares="all")),  # type: ignore[arg-type]
    "volumes that are none": returning(Assignment(volumes=("v",))),  # type: ignore[arg-type]
    "notes that are none": returning(Assignment(annotations=(("a", 5),))),  # type: ignore[arg-type]
    "a verdict that says success": returning(Verdict(Code.SUCCESS)),
}
NUMBERS = ("a number", "True", "a column", "a code")  # are scores
POINTS: dict[str, dict[str, Way]] = {
    "pre_enqueue": RAISES | NO_VERDICTS,
    "sign": RAISES | {"an object": returning(object()), "a set of columns": returning([np.zeros(3), object()])},
    "node_names": RAISES | NO_VERDICTS | NAMES,
    "pre_filter": RAISES | NO_VERDICTS | {"only a list": returning(PreFilterResult(["n1"]))},  # type: ignore[arg-type]
    "filter": RAISES | FILTERS | {"returns a mask": lambda pod, nodes, verdict: np.ones(nodes.width, bool)},
    "score": {name: way for name, way in (RAISES | NO_VERDICTS | SCORES).items() if name not in NUMBERS},
    "normalize": RAISES | NORMALIZES,
    "extremes": RAISES | EXTREMES,
    "assign": RAISES | ASSIGNS,
    "capacity": RAISES | ROOMS,
    "member_constraints": RAISES
    | {"a word": returning("no"), "bonds that are none": returning([MemberConstraint("no")])},  # type: ignore[arg-type]
    "amounts": RAISES | {"a word": returning("no"), "amounts that are words": returning({"cpu": "1"})},
}
OF_GANGS = ("capacity", "member_constraints", "amounts")
CASES = [pytest.param(point, way, id=f"{point} {name}") for point, ways in POINTS.items() for name, way in ways.items()]


class Bad:
    """What is wrong with the plugin now, and for whom: nothing, in the beginning."""

    def __init__(self) -> None:
        self.way: Way | None = None

    def plugin(self, point: str) -> type[Any]:
        """A plugin that has this point, and those without which it would not be asked."""
        bad = self

        def odd(pod: Pod | PodClass) -> bool:
            asked = pod.demand.amounts if isinstance(pod, PodClass) else ()
            return ("cpu", 1000 * int(ODD)) in asked or (isinstance(pod, Pod) and pod.metadata.name.startswith("odd"))

        def method(well: Any) -> Callable[..., Any]:
            def asked(plugin: Any, pod: Any, *more: Any) -> Any:
                return bad.way(pod, *more) if bad.way is not None and odd(pod) else well(*more)

            return asked

        members: dict[str, Any] = {"name": "Foreign", "reads": (), "depends": Depends.USAGE}
        members["__init__"] = lambda plugin, args: None
        well = {"score": lambda nodes, job: nodes.used("pods") % 2, "assign": lambda *_: Assignment()}
        if point in ("normalize", "extremes"):
            members["normalize"] = self._normalize(point)
            members["score"] = lambda plugin, pod, nodes, job: nodes.used("pods") % 2 + odd(pod) * 1000
        else:
            members[point] = method(
                well.get(point, _nothing if point not in ("member_constraints", "amounts") else _none_of(point))
            )
        if point == "score":
            members["normalize"] = AS_IS
        if point in (*OF_GANGS, "sign", "pre_filter"):
            members["filter"] = _lets_in
        if point == "amounts":
            members["capacity"] = _nothing
        return type("Foreign", (), members)

    def _normalize(self, point: str) -> Normalize:
        """Raw scores of the odd pod are 1000 and more."""

        def apply(raw: Any, extremes: Any) -> Any:
            if point == "normalize" and self.way is not None and np.max(raw, initial=0) >= 1000:
                return self.way(raw, extremes)
            return raw % 2

        def reduce(raw: Any) -> Any:
            if point == "extremes" and self.way is not None and np.max(raw, initial=0) >= 1000:
                return self.way(raw)
            return (int(np.max(raw, initial=0)),)

        return custom_normalize(reduce, apply)


def _nothing(*_: Any) -> None:
    """Has nothing to say."""


def _none_of(point: str) -> Callable[..., Any]:
    return lambda *_: [] if point == "member_constraints" else {}


def _lets_in(plugin: Any, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
    """Everybody."""


def pods(gang: bool) -> list[Pod]:
    """The members of the gang are of two kinds."""
    there = ["kubernetes.io/hostname Exists"]  # so that plugins are asked for pins
    if not gang:
        return [a_pod("odd", cpu=ODD, requires=there)]
    labels = {NAME: "odd", LEAST: "2"}
    return [a_pod(f"odd-{i}", cpu=ODD, memory=f"{i}Gi", labels=labels, requires=there) for i in range(2)]


def told(fixture: SchedulerFixture) -> list[str]:
    return [each for each in fixture.told() if each.startswith("FailedScheduling odd")]


def play(point: str, way: Way, gang: bool) -> None:
    async def life() -> None:
        bad = Bad()
        fixture = SchedulerFixture(CONFIG, {"Foreign": bad.plugin(point)})
        bad.way = way
        fixture.nodes(a_node("n1"), a_node("n2"), a_node("n3"))
        before = fixture.ledger.nodes.resources.used.tobytes()
        fixture.pods(*pods(gang))
        fixture.handlers.assembler.build_changed()
        await fixture.work()
        assert fixture.ledger.nodes.resources.used.tobytes() == before
        assert told(fixture), "the pod is told why it waits"
        assert "Foreign" in told(fixture)[0], "a pod by itself is told, and the first of a gang"
        assert fixture.scheduler.plugin_failures["Foreign"] >= 1
        fixture.pods(a_pod("innocent", cpu=1))
        await fixture.work()
        assert set(fixture.where()) == {"innocent"}
        bad.way = None
        fixture.clock.advance(400)
        await fixture.work()
        assert {name.partition("-")[0] for name in fixture.where()} == {"innocent", "odd"}

    run(life())


@pytest.mark.parametrize(("point", "way"), [case for case in CASES if case.values[0] not in OF_GANGS])
def test_a_plugin_that_misbehaves_for_a_pod_is_named_and_others_go_on(point: str, way: Way) -> None:
    play(point, way, gang=False)


@pytest.mark.parametrize(
    ("point", "way"),
    [case for case in CASES if case.values[0] in (*OF_GANGS, "pre_enqueue") or case.values[1] is RAISES["raises"]],
)
def test_a_plugin_that_misbehaves_for_a_gang_is_named_and_others_go_on(point: str, way: Way) -> None:
    play(point, way, gang=True)


@pytest.mark.parametrize(
    "way",
    [
        *(pytest.param(way, id=name) for name, way in RAISES.items()),
        pytest.param(returning("first"), id="a word"),
        pytest.param(returning((math.nan,)), id="NaN"),
        pytest.param(returning(("a",)), id="words"),
        pytest.param(returning(None), id="nothing"),
    ],
)
def test_an_order_that_is_none_is_first_come_first_served(way: Way) -> None:
    class Sorting:
        name: ClassVar[str] = "Foreign"
        reads: ClassVar[tuple[str, ...]] = ()

        def __init__(self, args: Mapping[str, Any]) -> None:
            pass

        def sort_key(self, priority: int, since: float) -> Any:
            return way() if priority == 7 else (-priority, since)

    async def life() -> None:
        fixture = SchedulerFixture(SORTING, {"Foreign": Sorting})
        fixture.nodes(a_node("n1"))
        fixture.pods(a_pod("odd", cpu=1, priority=7), a_pod("innocent", cpu=1), a_pod("other", cpu=1, priority=9))
        await fixture.work()
        assert set(fixture.where()) == {"odd", "innocent", "other"}
        assert fixture.scheduler.plugin_failures["Foreign"] >= 1

    run(life())


@pytest.mark.parametrize("way", [*RAISES.values(), returning(np.zeros(3)), returning("no")])
def test_a_hint_that_fails_wakes_the_pod(way: Way) -> None:
    """A useless attempt costs less than a pod that is never woken."""

    class Hinting:
        name: ClassVar[str] = "Foreign"
        reads: ClassVar[tuple[str, ...]] = ()
        depends = Depends.USAGE
        events_to_register = (
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.ADD, lambda plugin, pod, event: way()),
        )
        full = True

        def __init__(self, args: Mapping[str, Any]) -> None:
            pass

        def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
            refused = Hinting.full and ("cpu", 1000 * int(ODD)) in pod.demand.amounts
            verdict.reject(np.full(nodes.width, refused), Reason("full"))

    async def life() -> None:
        fixture = SchedulerFixture(CONFIG, {"Foreign": Hinting})
        fixture.nodes(a_node("n1"))
        fixture.pods(a_pod("odd", cpu=ODD))
        await fixture.work()
        fixture.clock.advance(20)
        Hinting.full = False
        fixture.handlers.on_node_update(a_node("n1", labels={"more": "1"}))
        await fixture.work()
        assert fixture.where() == {}
        fixture.pods(a_pod("other", cpu=1, node="n1", scheduler_name="another"))
        await fixture.work()
        assert set(fixture.where()) == {"odd", "other"}

    run(life())
