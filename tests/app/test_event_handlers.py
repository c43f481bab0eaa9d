"""What the watches say, in whatever order and however often: ledger and room are what a list would make them."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.codec import Unreadable, encode
from kubenexus.api.core import Pod
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import Namespace
from kubenexus.app.watch.informers import WATCHED_KINDS, InformerHandler
from kubenexus.client import kinds
from kubenexus.client.calls import Call
from kubenexus.client.watch_events import ADDED, DELETED, MODIFIED, WatchEvent
from kubenexus.queue.queued_job import QueueState
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_container, a_node, a_pod, a_pod_term
from kubenexus.testing.harness import on_node
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

BAD = Unreadable("Pod", "default", "bad", "u", node="n", field="spec", problem="not a map")


def hearing(fixture: SchedulerFixture, resource: kinds.ApiResource = kinds.PODS) -> InformerHandler:
    return InformerHandler(fixture.handlers, resource, fixture.scheduler.wakeup)


def test_each_kind_is_watched_once_and_pods_last() -> None:
    assert len({resource.all for resource in WATCHED_KINDS}) == len(WATCHED_KINDS)
    assert WATCHED_KINDS[-1] is kinds.PODS, "what a pod refers to is known before it"


def test_a_list_after_a_gap_ends_what_is_not_in_it() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        heard = hearing(fixture)
        fixture.nodes(a_node("n", cpu=2))
        heard.events([WatchEvent(ADDED, a_pod("runs", cpu=2, node="n")), WatchEvent(ADDED, a_pod("waits", cpu=1))])
        await fixture.work()
        assert fixture.queue.state("default/waits") is QueueState.UNSCHEDULABLE
        left = [a_pod("waits", cpu=1), a_pod("new", cpu=1)]
        fixture.server.pods.update({pod.key: pod for pod in left})
        heard.list_started()
        heard.list_page(left, ())
        heard.list_finished()
        fixture.clock.advance(60)
        await fixture.work()
        assert sorted(fixture.where()) == ["new", "waits"]

    scheduler_test(life)


def test_a_list_that_breaks_off_ends_nothing() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        heard = hearing(fixture)
        heard.events([WatchEvent(ADDED, a_pod("a", node="n")), WatchEvent(ADDED, a_pod("b", node="n"))])
        heard.list_started()
        heard.list_page([a_pod("a", node="n")], ())
        heard.list_started()
        heard.list_page([a_pod("b", node="n")], ())
        assert len(fixture.where()) == 2
        heard.list_finished()
        assert sorted(fixture.where()) == ["b"]

    scheduler_test(life)


def test_f39_a_pod_that_is_only_ever_updated_counts() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        hearing(fixture).events([WatchEvent(MODIFIED, a_pod("foreign", cpu=2, node="n"))])
        fixture.pods(a_pod("a", cpu=1))
        await fixture.work()
        assert fixture.queue.state("default/a") is QueueState.UNSCHEDULABLE

    scheduler_test(life)


def test_f25_a_pod_made_again_under_its_name_is_another_one() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        old, new = a_pod("a", cpu=2, node="n"), a_pod("a", cpu=1)
        new = msgspec.structs.replace(new, metadata=msgspec.structs.replace(new.metadata, uid="another"))
        fixture.handlers.on_pod_update(old)
        fixture.pods(new)
        assert fixture.where() == {}
        await fixture.work()
        assert fixture.ledger.pods["default/a"].uid == "another"

    scheduler_test(life)


def test_f64_one_bad_object_is_set_aside_and_its_node_is_closed() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        heard = hearing(fixture)
        fixture.nodes(a_node("n"), a_node("m"))
        heard.events([WatchEvent(ADDED, BAD), WatchEvent(ADDED, BAD)])
        fixture.pods(a_pod("a"), a_pod("b"))
        await fixture.work()
        assert set(fixture.where().values()) == {"m"}, "nothing new goes where nobody knows how full it is"
        heard.events([WatchEvent(DELETED, BAD)])
        fixture.pods(*(a_pod(f"c{i}") for i in range(4)))
        await fixture.work()
        assert "n" in fixture.where().values()
        heard.list_started()
        heard.list_page([], (BAD,))
        heard.list_finished()
        assert fixture.ledger.blocked_nodes == {"n": ["default/bad"]}
        heard.list_started()
        heard.list_page([], ())
        heard.list_finished()
        assert fixture.ledger.blocked_nodes == {}

    scheduler_test(life)


def test_a_pod_that_is_there_but_makes_no_sense_is_refused_in_words() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("odd", cpu="12 apples"))
        await fixture.work()
        assert fixture.where() == {}
        assert any("FailedScheduling odd" in each for each in fixture.told())

    scheduler_test(life)


def test_f42_a_standby_is_as_warm_as_the_leader() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        standby = SchedulerFixture()
        for each in (fixture, standby):
            each.nodes(a_node("n", cpu=4), a_node("m", cpu=4))
        pods = [a_pod(f"p{i}", cpu=1) for i in range(6)]
        fixture.pods(*pods)
        for pod in pods:
            standby.handlers.on_pod_update(pod)
        await fixture.work()
        fixture.echo()
        for pod in fixture.server.pods.values():
            standby.handlers.on_pod_update(pod)
        assert digest(standby.ledger) == digest(fixture.ledger)
        assert len(standby.queue) == len(fixture.queue) == 0

    scheduler_test(life)


class Ends:
    """The pod as the API server has it after its kubelet refused it."""

    def __init__(self, fixture: SchedulerFixture, pod: Pod, reason: str) -> None:
        self._send, self._pod, self._reason = fixture.server.send, pod, reason

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if call.method != "GET":
            return await self._send(call, timeout=timeout)
        body: dict[str, Any] = msgspec.json.decode(encode(self._pod))
        body["status"] = {"phase": "Failed", "reason": self._reason}
        return msgspec.json.encode(body)


def test_f19_a_class_stays_away_from_a_node_that_refused_it_for_a_while() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("big", cpu=64), a_node("small", cpu=4))
        fixture.pods(a_pod("a", cpu=1))
        await fixture.work()
        assert fixture.where() == {"a": "big"}
        fixture.echo()
        refused = on_node(a_pod("a", cpu=1), "big")
        fixture.scheduler.bind_verifier._api = Ends(fixture, refused, "OutOfcpu")
        fixture.handlers.on_pod_delete("default/a", refused)  # as the watch tells it: gone, with its last state
        await fixture.scheduler.bind_verifier.step()
        fixture.pods(*(a_pod(f"b{i}", cpu=1) for i in range(4)), a_pod("other", cpu="500m"))
        await fixture.work()
        where = fixture.where()
        assert {where[f"b{i}"] for i in range(4)} == {"small"}
        assert where["other"] == "big", "others may go there"
        fixture.pods(a_pod("c", cpu=1))
        await fixture.work()
        assert "c" not in fixture.where(), "small is full"
        fixture.clock.advance(61)
        await fixture.work()
        assert fixture.where()["c"] == "big"

    scheduler_test(life)


async def refused_by_its_kubelet(fixture: SchedulerFixture, pod: Pod) -> None:
    """As the watch tells it: gone, with its last state."""
    fixture.scheduler.bind_verifier._api = Ends(fixture, pod, "PodOSNotSupported")
    fixture.handlers.on_pod_delete(pod.key, pod)
    await fixture.scheduler.bind_verifier.step()


@pytest.mark.parametrize(
    ("chosen", "kept_away"),
    [pytest.param("", ["evil"], id="placed by us"), pytest.param("n", [], id="it names its node itself")],
)
def test_a_refused_pod_keeps_none_of_another_namespace_away(chosen: str, kept_away: list[str]) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("bad", namespace="evil", node=chosen))
        await fixture.work()
        fixture.echo()
        await refused_by_its_kubelet(fixture, on_node(a_pod("bad", namespace="evil"), "n"))
        fixture.pods(*(a_pod(f"next-{each}", namespace=each) for each in ("evil", "good")))
        await fixture.work()
        assert [each for each in ("evil", "good") if f"next-{each}" not in fixture.where()] == kept_away

    scheduler_test(life)


def test_of_a_gang_those_stay_away_that_are_like_the_one_that_was_refused() -> None:
    """Members of two classes, one after the other, and each told apart from the one before it."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("big", cpu=64), a_node("small", cpu=2))
        planner = fixture.scheduler.planners["default-scheduler"]
        gang = [a_member(f"p{i}", least=4, cpu=1 + i % 2) for i in range(4)]
        fixture.scheduler.node_backoff.add(
            "default", planner.class_cache.signature(gang[0], fixture.ledger.nodes), "big"
        )
        fixture.pods(*gang)
        await fixture.work()
        assert fixture.where() == {"p0": "small", "p1": "big", "p2": "small", "p3": "big"}

    scheduler_test(life)


def test_a_pod_that_was_deleted_before_it_ran_blames_nobody() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("a"))
        await fixture.work()
        fixture.echo()
        fixture.delete("default/a")
        await fixture.scheduler.bind_verifier.step()
        assert not fixture.scheduler.node_backoff

    scheduler_test(life)


def test_f64_an_object_that_brings_its_handler_down_does_not_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        seen = fixture.ledger.upsert_pod

        def breaks(pod: Pod) -> set[int]:
            if pod.metadata.name == "odd":
                raise KeyError("a bug")
            return seen(pod)

        monkeypatch.setattr(fixture.ledger, "upsert_pod", breaks)
        fixture.nodes(a_node("n"), a_node("m"))
        hearing(fixture).events([WatchEvent(ADDED, a_pod("odd", node="n")), WatchEvent(ADDED, a_pod("fine", node="m"))])
        assert fixture.where() == {"fine": "m"}
        assert fixture.ledger.blocked_nodes == {"n": ["default/odd"]}

    scheduler_test(life)


def test_f26_a_pod_takes_what_its_kubelet_will_count() -> None:
    """Sidecars are summed with what runs beside and after them, overhead and the pod's own requests count."""

    async def life(fixture: SchedulerFixture) -> None:
        sidecar, step = a_container(cpu=1), a_container(cpu=2)
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(
            a_pod("three", cpu="500m", sidecars=[sidecar], init=[step]),
            a_pod("two", cpu=1, overhead={"cpu": "1"}),
            a_pod("one", cpu="100m", pod_level={"cpu": "1"}),
        )
        await fixture.work()
        fixture.pods(a_pod("large", cpu="2001m"), a_pod("last", cpu=2))
        await fixture.work()
        assert sorted(fixture.where()) == ["last", "one", "three", "two"]

    scheduler_test(life)


def test_a_namespace_that_is_relabelled_wakes_whom_its_pods_kept_away() -> None:
    """No event of upstream's tells it: whoever waits for this would wait for the flush."""

    def namespace(**labels: str) -> Namespace:
        return Namespace(metadata=ObjectMeta(name="others", labels=labels))

    async def life(fixture: SchedulerFixture) -> None:
        fixture.handlers.objects.on_update("Namespace", namespace(team="red"))
        fixture.nodes(a_node("n", cpu=2))
        fixture.handlers.on_pod_update(a_pod("there", namespace="others", node="n", labels={"app": "web"}))
        red = LabelSelector(match_labels={"team": "red"})
        term = msgspec.structs.replace(a_pod_term("app=web per kubernetes.io/hostname"), namespace_selector=red)
        fixture.pods(a_pod("shy", apart=[term]))
        await fixture.work()
        assert fixture.queue.state("default/shy") is QueueState.UNSCHEDULABLE
        fixture.clock.advance(20)
        fixture.handlers.objects.on_update("Namespace", namespace(team="red"))
        assert fixture.queue.state("default/shy") is QueueState.UNSCHEDULABLE
        fixture.handlers.objects.on_update("Namespace", namespace(team="blue"))
        await fixture.work()
        assert "shy" in fixture.where()

    scheduler_test(life)
