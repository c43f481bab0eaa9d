"""Who is to blame, and who wrote without a lease: on journals of a few lines."""

import json

import pytest

from tests.chaos.invariants import Breach
from tests.chaos.observed_cluster import PodSeen
from tests.chaos.request_log import Asked, RequestLog, sort_of
from tests.chaos.seed_result import binds_under_another, evicted_twice, fenced, judged, seconds_led

LEASE = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/kubenexus-scheduler"


def a_bind(journal: RequestLog, who: str, pod: str, at: float, node: str = "n") -> Asked:
    body = {"metadata": {"name": pod, "uid": f"uid-{pod}"}, "target": {"name": node}}
    return journal.ask(who, "POST", f"/api/v1/namespaces/ns/pods/{pod}/binding", json.dumps(body).encode(), at)


def renewal(journal: RequestLog, who: str, at: float, *, code: int = 200, version: int = 0, holder: str = "me") -> None:
    held = f"{who}-id" if holder == "me" else holder
    asked = journal.ask(who, "PUT", LEASE, json.dumps({"spec": {"holderIdentity": held}}).encode(), at)
    asked.code, asked.version = code, version


def on_n(name: str, version: int) -> PodSeen:
    return PodSeen(f"ns/{name}", f"uid-{name}", "s", "n", {"cpu": 1000}, version)


# --- who overbooked -------------------------------------------------------------------------------------------------


def overbooked(*others: PodSeen, last: PodSeen) -> Breach:
    return Breach("overbooked", "node n", last.bound_at, last, others, {"cpu": 1000})


@pytest.mark.parametrize(
    ("heard_at", "guilty"),
    [
        pytest.param(1.0, True, id="it had heard of the stranger long before"),
        pytest.param(4.9, False, id="it heard in the very moment"),
        pytest.param(9.0, False, id="it heard too late"),
    ],
)
def test_a_stranger_counts_when_it_could_be_known(heard_at: float, guilty: bool) -> None:
    journal = RequestLog()
    journal.tell("r0.1", b'{"object":{"metadata":{"resourceVersion":"10"}}}', heard_at)
    a_bind(journal, "r0.1", "ours", 5.0)
    verdict = judged([overbooked(on_n("strange", 10), last=on_n("ours", 11))], journal)
    assert (len(verdict.breaches), len(verdict.races)) == (guilty, not guilty)


def test_our_own_binds_are_always_known_whichever_process_sent_them() -> None:
    journal = RequestLog()
    a_bind(journal, "r0.1", "first", 1.0)
    a_bind(journal, "r1.1", "second", 1.1)
    verdict = judged([overbooked(on_n("first", 10), last=on_n("second", 11))], journal)
    assert verdict.breaches == ["overbooked: node n"]


def test_a_stranger_who_comes_last_is_not_our_fault() -> None:
    journal = RequestLog()
    a_bind(journal, "r0.1", "ours", 1.0)
    verdict = judged([overbooked(on_n("ours", 10), last=on_n("strange", 11))], journal)
    assert (verdict.breaches, verdict.races) == ([], ["overbooked: node n"])


def test_every_other_breach_is_one() -> None:
    assert judged([Breach("lost", "pod ns/a")], RequestLog()).breaches == ["lost: pod ns/a"]


# --- who led --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "said"),
    [
        pytest.param(0.5, ["r0.1: POST /api/v1/namespaces/ns/pods/a/binding before it led"], id="too early"),
        pytest.param(1.5, [], id="in time"),
        pytest.param(5.9, [], id="as late as the second renewal allows"),
        pytest.param(
            6.1, ["r0.1: POST /api/v1/namespaces/ns/pods/a/binding 4.10 s after its last renewal"], id="too late"
        ),
    ],
)
def test_writes_are_measured_from_the_last_renewal_that_was_answered(at: float, said: list[str]) -> None:
    journal = RequestLog()
    for when, code in ((1.0, 200), (2.0, 200), (3.0, 0), (4.0, 409)):
        if when <= at:
            renewal(journal, "r0.1", when, code=code)
    a_bind(journal, "r0.1", "a", at)
    assert fenced(journal, 4.0).breaches == said


def test_nothing_is_written_after_the_lease_was_given_up() -> None:
    journal = RequestLog()
    renewal(journal, "r0.1", 1.0)
    renewal(journal, "r0.1", 2.0, holder="")
    a_bind(journal, "r0.1", "a", 2.1)
    assert fenced(journal, 4.0).breaches == [
        "r0.1: POST /api/v1/namespaces/ns/pods/a/binding after it gave its lease up"
    ]


def test_another_ones_renewals_do_not_count() -> None:
    journal = RequestLog()
    renewal(journal, "r1.1", 1.0)
    a_bind(journal, "r0.1", "a", 1.1)
    assert len(fenced(journal, 4.0).breaches) == 1


def test_a_proxy_that_slept_does_not_call_a_write_late() -> None:
    journal = RequestLog(beats=[4.8, 4.9, 6.1])
    renewal(journal, "r0.1", 1.0)
    a_bind(journal, "r0.1", "a", 6.0)
    assert fenced(journal, 4.0).breaches == []


@pytest.mark.parametrize(
    ("bound_at", "said"),
    [
        pytest.param(15, [], id="under its own lease"),
        pytest.param(25, ["pod ns/a was bound by r0.1 while r1.1-id held the lease"], id="under another's"),
        pytest.param(35, [], id="under a thief's"),
        pytest.param(5, ["pod ns/a was bound by r0.1 while nobody held the lease"], id="under nobody's"),
    ],
)
def test_a_bind_takes_effect_under_the_lease_of_who_sent_it(bound_at: int, said: list[str]) -> None:
    journal = RequestLog()
    renewal(journal, "r0.1", 1.0, version=10)
    a_bind(journal, "r0.1", "a", 1.5)
    renewal(journal, "r1.1", 6.0, version=20)
    assert list(binds_under_another(journal, [on_n("a", bound_at)], {30: "thief"}, {"thief"})) == said


@pytest.mark.parametrize(
    ("method", "path", "sort"),
    [
        ("GET", "/api/v1/pods?watch=1&resourceVersion=5", "watch pods"),
        ("GET", "/api/v1/pods?limit=500", "list"),
        ("GET", "/api/v1/namespaces/a/pods/b", "get"),
        ("GET", LEASE, "lease"),
        ("PUT", LEASE, "lease"),
        ("POST", "/api/v1/namespaces/a/pods/b/binding", "bind"),
        ("PATCH", "/api/v1/namespaces/a/pods/b/status", "status"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/a/events", "event"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "review"),
        ("PATCH", "/api/v1/persistentvolumeclaims/a", "write"),
    ],
)
def test_what_a_request_is_for(method: str, path: str, sort: str) -> None:
    assert sort_of(method, path) == sort


# --- evictions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evictions", "breaches"),
    [
        pytest.param([("a", 201), ("b", 201)], [], id="each once"),
        pytest.param([("a", 429), ("a", 0), ("a", 201)], [], id="refused, never passed on, accepted"),
        pytest.param([("a", 201), ("a", 201)], ["pod ns/a was evicted 2 times"], id="accepted twice"),
    ],
)
def test_a_pod_is_evicted_once(evictions: list[tuple[str, int]], breaches: list[str]) -> None:
    journal = RequestLog()
    for pod, answer in evictions:
        body = {"metadata": {"name": pod}, "deleteOptions": {"preconditions": {"uid": f"uid-{pod}"}}}
        path = f"/api/v1/namespaces/ns/pods/{pod}/eviction"
        asked = journal.ask("r0.1", "POST", path, json.dumps(body).encode(), 1.0)
        assert asked.sort == "evict"
        asked.answer = answer
    assert list(evicted_twice(journal)) == breaches


@pytest.mark.parametrize(
    ("renewals", "led"),
    [
        pytest.param([], 0.0, id="nobody ever did"),
        pytest.param([(10.0, "me", 200)], 6.0, id="one renewal holds for the lease"),
        pytest.param([(10.0, "me", 200), (12.0, "me", 200), (14.0, "me", 201)], 10.0, id="renewals in a row"),
        pytest.param([(6.0, "me", 200), (38.0, "me", 200)], 4.0, id="only what is within the time counts"),
        pytest.param([(10.0, "me", 409), (12.0, "me", 0), (14.0, "", 200)], 0.0, id="refused, unanswered, given up"),
    ],
)
def test_for_how_long_a_process_led(renewals: list[tuple[float, str, int]], led: float) -> None:
    journal = RequestLog()
    for at, holder, code in renewals:
        renewal(journal, "r0.1", at, code=code, holder=holder)
    assert seconds_led(journal, 10.0, 40.0, 6.0) == led
