"""Faults through a real socket: a few seeds of `make chaos`, and a checker that can tell good from bad.

The schedulers at the end are wrong on purpose. Whoever judges them well would judge anybody well.
"""

import json
import ssl
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, Object
from tests.chaos.checker import Checker
from tests.chaos.faults import REQUEST_FAULTS, Plan
from tests.chaos.observed_cluster import LEAST, NAME
from tests.chaos.proxy import Proxy
from tests.chaos.scenario import Scenario, Wave, scenario
from tests.chaos.seed_cluster import SCHEDULER, a_pod
from tests.chaos.seed_result import judged
from tests.chaos.seed_run import Report, play
from tests.e2e.scheduling import a_node, make_nodes, pods

Rule = Callable[[list[Object], list[Object]], Iterator[tuple[str, str]]]


def well(report: Report) -> None:
    assert report.breaches == []
    assert report.races == []


# --- ours -------------------------------------------------------------------------------------------------------------


def test_all_faults_of_requests_at_once(plane: ControlPlane) -> None:
    lossy = dict.fromkeys(REQUEST_FAULTS, 0.03)
    waves = (Wave(60), Wave(40, leave=20))
    report = play(plane, Scenario(7, "rain", 8, 10, waves, dict.fromkeys(("bind", "status", "event", "get"), lossy)))
    well(report)
    assert report.faults.keys() >= REQUEST_FAULTS.keys()


@pytest.mark.parametrize("seed", [2, 4, 5, 6, 8, 9], ids=lambda seed: f"{seed} {scenario(seed).theme}")
def test_a_seed_of_the_long_run(plane: ControlPlane, seed: int) -> None:
    well(play(plane, scenario(seed)))


# --- the checker, on trial --------------------------------------------------------------------------------------------


class BadScheduler(threading.Thread):
    """Looks, decides by its rule and binds, again and again; everything goes through the proxy, as with a real one."""

    def __init__(self, port: int, token: str, namespace: str, rule: Rule) -> None:
        super().__init__(daemon=True)
        self._server, self._token, self._namespace, self._rule = f"http://127.0.0.1:{port}", token, namespace, rule
        self.rounds, self.over = 0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            nodes = self._ask("GET", "/api/v1/nodes?limit=500")["items"]
            # As a scheduler lists: the proxy notes that it has been told of these pods.
            there = self._ask("GET", "/api/v1/pods?limit=500&fieldSelector=status.phase!=Failed")["items"]
            for pod, node in self._rule(nodes, there):
                self._bind(next(each for each in there if each["metadata"]["name"] == pod), node)
            self.rounds += 1

    def _bind(self, pod: Object, node: str) -> None:
        meta = {key: pod["metadata"][key] for key in ("name", "uid")}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": node}}
        self._ask("POST", f"{pods(self._namespace)}/{meta['name']}/binding", binding)

    def _ask(self, method: str, path: str, body: Object | None = None) -> Object:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self._server + path, data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=10) as answer:
            found: Object = json.loads(answer.read())
        return found


def waiting(there: list[Object]) -> list[str]:
    ours = [pod for pod in there if pod["spec"]["schedulerName"] == SCHEDULER and not pod["spec"].get("nodeName")]
    return sorted(pod["metadata"]["name"] for pod in ours)


def ignores_foreign_binds(nodes: list[Object], there: list[Object]) -> Iterator[tuple[str, str]]:
    """One pod a core, but only its own pods count."""
    on = dict.fromkeys((node["metadata"]["name"] for node in nodes), 0)
    for pod in there:
        if pod["spec"]["schedulerName"] == SCHEDULER and pod["spec"].get("nodeName"):
            on[pod["spec"]["nodeName"]] += 1
    for name in waiting(there):
        node = min(on, key=lambda each: on[each])
        if on[node] < 4:
            on[node] += 1
            yield name, node


def forgets_a_pod(nodes: list[Object], there: list[Object]) -> Iterator[tuple[str, str]]:
    """Everybody gets a node but the third."""
    on = [node["metadata"]["name"] for node in nodes]
    yield from ((name, on[0]) for name in waiting(there) if name != "p2")


def binds_half_of_a_gang(nodes: list[Object], there: list[Object]) -> Iterator[tuple[str, str]]:
    """One pod after the other, as long as there are two cores."""
    taken = sum(bool(pod["spec"].get("nodeName")) for pod in there if pod["spec"]["schedulerName"] == SCHEDULER)
    yield from ((name, nodes[0]["metadata"]["name"]) for name in waiting(there)[: 2 - taken])


@contextmanager
def on_trial(plane: ControlPlane, namespace: str, rule: Rule) -> Iterator[tuple[Checker, Proxy, BadScheduler]]:
    trust, host = ssl.create_default_context(cafile=str(plane.authority)), urllib.parse.urlsplit(plane.server).netloc
    proxy = Proxy(plane.server, trust, Plan(1, {}))
    proxy.start()
    bad = BadScheduler(proxy.open("bad.1"), plane.token(), namespace, rule)
    try:
        with Checker(host, plane.token(), trust, scheduler=SCHEDULER, deadline=0.5) as checker:
            bad.start()
            yield checker, proxy, bad
    finally:
        bad.over.set()
        bad.join(10)
        proxy.close()


def test_the_checker_goes_red_on_a_scheduler_that_ignores_foreign_binds(
    plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1", cpu="4"))
    for i in range(3):
        cluster.create(a_pod(f"foreign{i}", "1", "somebody-else"), namespace)
        cluster.bind(namespace, f"foreign{i}", "n1")
    with on_trial(plane, namespace, ignores_foreign_binds) as (checker, proxy, bad):
        until(bad, lambda: bad.rounds >= 20)  # long enough to have heard of the foreign pods
        come(cluster, namespace, 2)
        until(bad, lambda: checker.bound == 5)
        verdict = judged(checker.breaches, proxy.journal)
    (said,) = verdict.breaches
    assert said.startswith(f"overbooked: node n1 has 5 pods and too little cpu for them since {namespace}/p")
    assert verdict.races == []


def test_the_checker_goes_red_on_a_scheduler_that_forgets_a_pod(
    plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1", cpu="4"))
    with on_trial(plane, namespace, forgets_a_pod) as (checker, proxy, bad):
        come(cluster, namespace, 4)
        until(bad, lambda: checker.bound == 3)
        assert [str(breach.text) for breach in checker.unsettled()] == [
            f"pod {namespace}/p2 waits, and there is room for it on n1"
        ]
        assert judged(checker.breaches, proxy.journal).breaches == []


def test_the_checker_goes_red_on_a_scheduler_that_binds_half_of_a_gang(
    plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1", cpu="2"))
    with on_trial(plane, namespace, binds_half_of_a_gang) as (checker, proxy, bad):
        come(cluster, namespace, 4, {NAME: "llama", LEAST: "4"})
        until(bad, lambda: checker.bound == 2)
        since = bad.rounds
        until(bad, lambda: bad.rounds > since + 20)  # its deadline has come
        cluster.create(a_pod("somebody", "1", "somebody-else"), namespace)
        until(bad, lambda: len(checker.pods()) == 5)
        said = judged(checker.breaches, proxy.journal).breaches
    assert said == [f"halved: gang {namespace}/llama has 2 members on nodes and needs 4"]


def come(cluster: ClusterClient, namespace: str, count: int, labels: dict[str, str] | None = None) -> None:
    """So many pods of one core each, for the scheduler on trial."""
    for i in range(count):
        pod = a_pod(f"p{i}", "1")
        pod["metadata"]["labels"] = labels or {}
        cluster.create(pod, namespace)


def until(bad: BadScheduler, condition: Callable[[], bool]) -> None:
    """`bad` may fail, too: then its mistake is what there is to see."""
    never = threading.Event()
    for _ in range(1000):
        if condition():
            return
        assert bad.is_alive(), "the bad scheduler is worse than it should be"
        never.wait(0.02)
    raise AssertionError("it did not come about")
