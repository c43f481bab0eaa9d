"""A cluster for a bench: a ledger filled as from a list, and pods to place on it.

A cluster must not fill up while a bench runs, or the bench would measure that. So what was placed is forgotten again
every few hundred pods, outside the timed part.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from bench import objects
from bench.measure import clock
from bench.objects import PLAIN_NODES, NodeKind, Template
from bench.wishes import claim_for, surroundings
from kubenexus.api.codec import decode_list, decode_pod
from kubenexus.api.core import Node, Pod
from kubenexus.app.watch.object_cache import ObjectCache, with_shared_parts
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.profile import Profile
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger

T = TypeVar("T")

PAGE = 500  # objects in a page of a list, kube-scheduler's own


class BenchError(Exception):
    """The bench did not do what it claims to measure."""


class Kind(NamedTuple):
    """What a cluster is like: its nodes, and how many pods run on each already."""

    nodes: NodeKind
    residents: float
    wish: str = ""  # of those that run already


# As scheduler_perf has it: equal nodes without taints or images, a pod on every fifth.
PLAIN = Kind(PLAIN_NODES, residents=0.2)
# An ordinary day: a tenth of the nodes is tainted, a twentieth cordoned, 20 images and 30 pods are on each.
CROWDED = Kind(NodeKind(tainted_every=10, cordoned_every=20, images=20), residents=30)


class Cluster:
    """Its ledger, numbers for pods that are used once, and what benches placed."""

    def __init__(self, kind: Kind, nodes: int, profile: Profile | None = None) -> None:
        self.kind = kind
        self._profile = profile
        self._objects = ObjectCache()
        self.size = nodes
        self.ledger = Ledger()
        self.numbers = itertools.count()
        self.placed: list[Job] = []
        surroundings(self.ledger)
        fill_nodes(self.ledger, nodes, kind.nodes)
        fill_pods(self.ledger, spread(nodes, int(nodes * kind.residents), kind.wish), self.numbers)

    def planner(self) -> Planner:
        """With the plugins of the profile, or kube-scheduler's, and knowing no class yet."""
        return Planner(profile_plugins(self._profile))

    def pods(self, templates: Iterable[Template]) -> list[Pod]:
        """One new pod of each template, decoded from its own bytes."""
        return [self._pod(template, next(self.numbers)) for template in templates]

    def _pod(self, template: Template, number: int) -> Pod:
        if template.wish == "volumes":
            claim_for(self.ledger, number)
        pod = decode_pod(objects.pod(template, number).encode())
        return with_shared_parts(pod, self._objects.stripped_pod(pod))  # as the event handlers queue it

    def drain(self) -> None:
        """Take back everything that was placed."""
        for job in self.placed:
            for pod in job.pods:
                self.ledger.forget(pod.key)
        self.placed.clear()


def placed(decision: Decision) -> Decision:
    """The decision, if it placed the pod: refusals are another thing to measure."""
    if not decision.placements:
        raise BenchError(f"{decision.job}: {decision.sentence()}")
    return decision


def decide_and_commit(planner: Planner, job: Job, ledger: Ledger, now: float = 0.0) -> float:
    """Places a job. Returns the seconds of the decision alone."""
    snapshot = ledger.snapshot()
    start = clock()
    decision = planner.decide(job, snapshot, now)
    spent = clock() - start
    commit(placed(decision), job, ledger, now)
    return spent


def mixture(classes: int, cpu: int = 50, memory: int = 250 << 10, zones: bool = False) -> list[Template]:
    """So many templates, from small pods to three times as much cpu and memory."""
    return [
        Template(
            cpu=cpu + (cpu * i) // (classes // 2 or 1),
            memory=memory + memory * (i % 20) // 10,
            zones=_two_zones(i) if zones else (),
            image=i % 60,
        )
        for i in range(classes)
    ]


def never_seen(zones: bool = False, wish: str = "") -> Iterator[Template]:
    """Templates without end, each of another class. All close to the ordinary pod in size."""
    for i in itertools.count():
        yield Template(100 + i % 50, (500 << 10) + i, _two_zones(i) if zones else (), i % 60, wish)


def small_classes() -> list[Template]:
    """A hundred workloads of which thirty pods fit on a node and leave room."""
    return mixture(100, cpu=40, memory=100 << 10)


def spread(nodes: int, pods: int, wish: str = "") -> Iterator[tuple[Template, str]]:
    """So many pods of the small classes, spread evenly over the nodes; each node has its own mixture."""
    small = [template._replace(wish=wish) for template in small_classes()]
    for i in range(pods):
        lap, number = divmod(i, nodes)
        yield small[(7 * number + 13 * lap) % len(small)], objects.node_name(number)


def fill_nodes(ledger: Ledger, nodes: int, kind: NodeKind) -> None:
    for page in _pages(range(nodes)):
        for node in decode_list(objects.node_page([objects.node(i, kind) for i in page]), Node).items:
            ledger.upsert_node(node)


def fill_pods(ledger: Ledger, where: Iterable[tuple[Template, str]], numbers: Iterator[int]) -> None:
    """Bound pods, page by page: no more than one page of text exists at a time."""
    for page in _pages(where):
        texts = [objects.pod(template, next(numbers), node) for template, node in page]
        for pod in decode_list(objects.pod_page(texts), Pod).items:
            ledger.upsert_pod(pod)


def _pages(things: Iterable[T]) -> Iterator[list[T]]:
    things = iter(things)
    while page := list(itertools.islice(things, PAGE)):
        yield page


def _two_zones(number: int) -> tuple[str, ...]:
    return tuple(zone for i, zone in enumerate(objects.ZONES) if i != number % len(objects.ZONES))
