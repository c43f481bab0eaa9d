"""What the watches say, in whatever order and however often: ledger and room are what a list would make them."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.codec import Unreadable, encode
from kubenexus.api.core import Pod
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import Namespace
from kubenexus.app.hearing import WATCHED, Hearing
from kubenexus.client import kinds
from kubenexus.client.calls import Call
from kubenexus.client.changes import ADDED, DELETED, MODIFIED, Change
from kubenexus.queue.entry import Place
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_container, a_node, a_pod, a_pod_term
from kubenexus.testing.harness import on_node
from tests.api.gangs.small import a_member
from tests.app.town import Town, in_town

BAD = Unreadable("Pod", "default", "bad", "u", node="n", field="spec", problem="not a map")


def hearing(town: Town, resource: kinds.Resource = kinds.PODS) -> Hearing:
    return Hearing(town.feed, resource)


def test_each_kind_is_watched_once_and_pods_last() -> None:
    assert len({resource.all for resource in WATCHED}) == len(WATCHED)
    assert WATCHED[-1] is kinds.PODS, "what a pod refers to is known before it"


def test_a_list_after_a_gap_ends_what_is_not_in_it() -> None:
    async def life(town: Town) -> None:
        heard = hearing(town)
        town.nodes(a_node("n", cpu=2))
        heard.changed([Change(ADDED, a_pod("runs", cpu=2, node="n")), Change(ADDED, a_pod("waits", cpu=1))])
        await town.work()
        assert town.room.place("default/waits") is Place.UNSCHEDULABLE
        left = [a_pod("waits", cpu=1), a_pod("new", cpu=1)]
        town.server.pods.update({pod.key: pod for pod in left})
        heard.begin()
        heard.listed(left, ())
        heard.end()
        town.clock.advance(60)
        await town.work()
        assert sorted(town.where()) == ["new", "waits"]

    in_town(life)


def test_a_list_that_breaks_off_ends_nothing() -> None:
    async def life(town: Town) -> None:
        heard = hearing(town)
        heard.changed([Change(ADDED, a_pod("a", node="n")), Change(ADDED, a_pod("b", node="n"))])
        heard.begin()
        heard.listed([a_pod("a", node="n")], ())
        heard.begin()
        heard.listed([a_pod("b", node="n")], ())
        assert len(town.where()) == 2
        heard.end()
        assert sorted(town.where()) == ["b"]

    in_town(life)


def test_f39_a_pod_that_is_only_ever_updated_counts() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=2))
        hearing(town).changed([Change(MODIFIED, a_pod("foreign", cpu=2, node="n"))])
        town.pods(a_pod("a", cpu=1))
        await town.work()
        assert town.room.place("default/a") is Place.UNSCHEDULABLE

    in_town(life)


def test_f25_a_pod_made_again_under_its_name_is_another_one() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=2))
        old, new = a_pod("a", cpu=2, node="n"), a_pod("a", cpu=1)
        new = msgspec.structs.replace(new, metadata=msgspec.structs.replace(new.metadata, uid="another"))
        town.feed.pod_seen(old)
        town.pods(new)
        assert town.where() == {}
        await town.work()
        assert town.ledger.pods["default/a"].uid == "another"

    in_town(life)


def test_f64_one_bad_object_is_set_aside_and_its_node_is_closed() -> None:
    async def life(town: Town) -> None:
        heard = hearing(town)
        town.nodes(a_node("n"), a_node("m"))
        heard.changed([Change(ADDED, BAD), Change(ADDED, BAD)])
        town.pods(a_pod("a"), a_pod("b"))
        await town.work()
        assert set(town.where().values()) == {"m"}, "nothing new goes where nobody knows how full it is"
        heard.changed([Change(DELETED, BAD)])
        town.pods(*(a_pod(f"c{i}") for i in range(4)))
        await town.work()
        assert "n" in town.where().values()
        heard.begin()
        heard.listed([], (BAD,))
        heard.end()
        assert town.ledger.fences == {"n": ["default/bad"]}
        heard.begin()
        heard.listed([], ())
        heard.end()
        assert town.ledger.fences == {}

    in_town(life)


def test_a_pod_that_is_there_but_makes_no_sense_is_refused_in_words() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.pods(a_pod("odd", cpu="12 apples"))
        await town.work()
        assert town.where() == {}
        assert any("FailedScheduling odd" in each for each in town.told())

    in_town(life)


def test_f42_a_standby_is_as_warm_as_the_leader() -> None:
    async def life(town: Town) -> None:
        standby = Town()
        for each in (town, standby):
            each.nodes(a_node("n", cpu=4), a_node("m", cpu=4))
        pods = [a_pod(f"p{i}", cpu=1) for i in range(6)]
        town.pods(*pods)
        for pod in pods:
            standby.feed.pod_seen(pod)
        await town.work()
        town.echo()
        for pod in town.server.pods.values():
            standby.feed.pod_seen(pod)
        assert digest(standby.ledger) == digest(town.ledger)
        assert len(standby.room) == len(town.room) == 0

    in_town(life)


class Ends:
    """The pod as the API server has it after its kubelet refused it."""

    def __init__(self, town: Town, pod: Pod, reason: str) -> None:
        self._send, self._pod, self._reason = town.server.send, pod, reason

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if call.method != "GET":
            return await self._send(call, timeout=timeout)
        body: dict[str, Any] = msgspec.json.decode(encode(self._pod))
        body["status"] = {"phase": "Failed", "reason": self._reason}
        return msgspec.json.encode(body)


def test_f19_a_class_stays_away_from_a_node_that_refused_it_for_a_while() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("big", cpu=64), a_node("small", cpu=4))
        town.pods(a_pod("a", cpu=1))
        await town.work()
        assert town.where() == {"a": "big"}
        town.echo()
        refused = on_node(a_pod("a", cpu=1), "big")
        town.scheduler.inquest._api = Ends(town, refused, "OutOfcpu")
        town.feed.pod_gone("default/a", refused)  # as the watch tells it: gone, with its last state
        await town.scheduler.inquest.step()
        town.pods(*(a_pod(f"b{i}", cpu=1) for i in range(4)), a_pod("other", cpu="500m"))
        await town.work()
        where = town.where()
        assert {where[f"b{i}"] for i in range(4)} == {"small"}
        assert where["other"] == "big", "others may go there"
        town.pods(a_pod("c", cpu=1))
        await town.work()
        assert "c" not in town.where(), "small is full"
        town.clock.advance(61)
        await town.work()
        assert town.where()["c"] == "big"

    in_town(life)


async def refused_by_its_kubelet(town: Town, pod: Pod) -> None:
    """As the watch tells it: gone, with its last state."""
    town.scheduler.inquest._api = Ends(town, pod, "PodOSNotSupported")
    town.feed.pod_gone(pod.key, pod)
    await town.scheduler.inquest.step()


@pytest.mark.parametrize(
    ("chosen", "kept_away"),
    [pytest.param("", ["evil"], id="placed by us"), pytest.param("n", [], id="it names its node itself")],
)
def test_a_refused_pod_keeps_none_of_another_namespace_away(chosen: str, kept_away: list[str]) -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.pods(a_pod("bad", namespace="evil", node=chosen))
        await town.work()
        town.echo()
        await refused_by_its_kubelet(town, on_node(a_pod("bad", namespace="evil"), "n"))
        town.pods(*(a_pod(f"next-{each}", namespace=each) for each in ("evil", "good")))
        await town.work()
        assert [each for each in ("evil", "good") if f"next-{each}" not in town.where()] == kept_away

    in_town(life)


def test_of_a_gang_those_stay_away_that_are_like_the_one_that_was_refused() -> None:
    """Members of two classes, one after the other, and each told apart from the one before it."""

    async def life(town: Town) -> None:
        town.nodes(a_node("big", cpu=64), a_node("small", cpu=2))
        planner = town.scheduler.planners["default-scheduler"]
        gang = [a_member(f"p{i}", least=4, cpu=1 + i % 2) for i in range(4)]
        town.scheduler.shunned.add("default", planner.bench.signature(gang[0], town.ledger.nodes), "big")
        town.pods(*gang)
        await town.work()
        assert town.where() == {"p0": "small", "p1": "big", "p2": "small", "p3": "big"}

    in_town(life)


def test_a_pod_that_was_deleted_before_it_ran_blames_nobody() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.pods(a_pod("a"))
        await town.work()
        town.echo()
        town.delete("default/a")
        await town.scheduler.inquest.step()
        assert not town.scheduler.shunned

    in_town(life)


def test_f64_an_object_that_brings_its_handler_down_does_not_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(town: Town) -> None:
        seen = town.ledger.pod_seen

        def breaks(pod: Pod) -> set[int]:
            if pod.metadata.name == "odd":
                raise KeyError("a bug")
            return seen(pod)

        monkeypatch.setattr(town.ledger, "pod_seen", breaks)
        town.nodes(a_node("n"), a_node("m"))
        hearing(town).changed([Change(ADDED, a_pod("odd", node="n")), Change(ADDED, a_pod("fine", node="m"))])
        assert town.where() == {"fine": "m"}
        assert town.ledger.fences == {"n": ["default/odd"]}

    in_town(life)


def test_f26_a_pod_takes_what_its_kubelet_will_count() -> None:
    """Sidecars are summed with what runs beside and after them, overhead and the pod's own requests count."""

    async def life(town: Town) -> None:
        sidecar, step = a_container(cpu=1), a_container(cpu=2)
        town.nodes(a_node("n", cpu=8))
        town.pods(
            a_pod("three", cpu="500m", sidecars=[sidecar], init=[step]),
            a_pod("two", cpu=1, overhead={"cpu": "1"}),
            a_pod("one", cpu="100m", pod_level={"cpu": "1"}),
        )
        await town.work()
        town.pods(a_pod("large", cpu="2001m"), a_pod("last", cpu=2))
        await town.work()
        assert sorted(town.where()) == ["last", "one", "three", "two"]

    in_town(life)


def test_a_namespace_that_is_relabelled_wakes_whom_its_pods_kept_away() -> None:
    """No event of upstream's tells it: whoever waits for this would wait for the flush."""

    def namespace(**labels: str) -> Namespace:
        return Namespace(metadata=ObjectMeta(name="others", labels=labels))

    async def life(town: Town) -> None:
        town.feed.seen("Namespace", namespace(team="red"))
        town.nodes(a_node("n", cpu=2))
        town.feed.pod_seen(a_pod("there", namespace="others", node="n", labels={"app": "web"}))
        red = LabelSelector(match_labels={"team": "red"})
        term = msgspec.structs.replace(a_pod_term("app=web per kubernetes.io/hostname"), namespace_selector=red)
        town.pods(a_pod("shy", apart=[term]))
        await town.work()
        assert town.room.place("default/shy") is Place.UNSCHEDULABLE
        town.clock.advance(20)
        town.feed.seen("Namespace", namespace(team="red"))
        assert town.room.place("default/shy") is Place.UNSCHEDULABLE
        town.feed.seen("Namespace", namespace(team="blue"))
        await town.work()
        assert "shy" in town.where()

    in_town(life)
