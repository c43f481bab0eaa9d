"""A seed as a scenario: how big the cluster is, what is sent, which faults the proxy has, what happens from outside."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.chaos.faults import Rates

BURST: Final = 1000
THEMES: Final = {
    "burst": "kill -9 in the middle of a burst of 1,000 pods, at a bind drawn from the seed",
    "rain": "requests are delayed, dropped, cut, answered late or wrongly",
    "watch": "watches are cut, frozen, expired, replayed, slowed",
    "server": "the API server is killed and started again",
    "etcd": "etcd is paused",
    "rival": "a second scheduler binds to the same nodes, now and then our very pods",
    "leader": "two replicas, and the one that leads loses the lease",
    "mixed": "some of everything, gangs too",
    "gangs": "gangs, elastic ones too, lose members between decision and bind, and the scheduler is asked to end",
    "preempt": "pods and gangs of high priority preempt others; evictions fail, budgets change, victims do not end",
    "hostile": "kinds that pods can do without cannot be listed, and tenants create pods of monstrous size",
}
ORDER: Final = tuple(THEMES)
DEEDS: Final = {
    "kill": "kill -9 of the process that sent this bind",
    "term": "the leader is asked to end",
    "pause": "the leader is stopped (SIGSTOP) for longer than its lease, and goes on",
    "deafen": "no renewal of the leader comes through",
    "steal": "a stranger takes the lease",
    "server": "the API server is killed and started again",
    "etcd": "etcd is stopped for a while",
    "kill at eviction": "kill -9 of the process that sent this eviction",
    "forsake": "jobs that wait for the end of their victims are deleted before this eviction is passed on",
    "lose": "other members of the gang that is being bound are deleted before this bind is passed on",
}
# Third parties' kinds, and those of Kubernetes' own that no pod here names.
OPTIONAL: Final = (
    "/apis/scheduling.volcano.sh/",
    "/apis/scheduling.x-k8s.io/",
    "/apis/resource.k8s.io/",
    "/apis/policy/",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/scheduling.k8s.io/v1beta1/podgroups",
)


_ANYWHERE: Final = tuple(kind for kind in DEEDS if kind not in ("kill at eviction", "forsake"))


@dataclass(frozen=True)
class Deed:
    """Something that happens from outside, when so many binds (or evictions) of its wave were asked for."""

    kind: str
    binds: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Wave:
    """Pods that come together; `deed` strikes in their midst, `leave` of the bound ones go before.

    `gangs` are sizes and minimums of gangs that come with them, one gang goes before if there are any. `monsters` come
    first. `broken` are paths that cannot be read from now on, and how: 500, `hang` or `garbage`. `high`: all are of
    high priority. `allowed`: so many pods may be disrupted from now on, by the budget of some; -1: no budget.
    """

    pods: int
    leave: int = 0
    deed: Deed | None = None
    gangs: tuple[tuple[int, int], ...] = ()
    monsters: int = 0
    broken: tuple[tuple[str, str], ...] = ()
    high: bool = False
    allowed: int = -1

    @property
    def members(self) -> int:
        return sum(size for size, _ in self.gangs)


@dataclass(frozen=True)
class Scenario:
    seed: int
    theme: str
    nodes: int
    cpu: int
    waves: tuple[Wave, ...]
    rates: Rates
    replicas: int = 1
    rival: int = 0  # pods of the second scheduler

    @property
    def pods(self) -> int:
        return sum(wave.pods + wave.members for wave in self.waves)

    def sizes(self) -> Random:
        """What the sizes of pods are drawn from."""
        return Random(f"{self.seed}/pods")


def scenario(seed: int) -> Scenario:
    """The same for the same seed, always. Themes take turns, so that any 11 seeds in a row have each once."""
    rng, theme = Random(seed), ORDER[seed % len(ORDER)]
    if theme == "burst":
        waves: tuple[Wave, ...] = (Wave(BURST, deed=Deed("kill", rng.randrange(BURST // 20, BURST * 7 // 10))),)
        # A standby has its watch frozen long before: it must not begin until it has seen the last bind.
        return Scenario(seed, theme, 12, 80, waves, _drizzle(rng), replicas=rng.choice((1, 2)))
    nodes, cpu = rng.randrange(6, 13), rng.randrange(6, 13)
    capacity = nodes * cpu
    wave = _preemption_wave if theme == "preempt" else _wave
    waves = tuple(wave(theme, number, capacity, rng) for number in range(3))
    return Scenario(
        seed,
        theme,
        nodes,
        cpu,
        waves,
        _rates(theme, rng),
        replicas=2 if theme == "leader" else rng.choice((1, 2)) if theme in ("mixed", "gangs", "preempt") else 1,
        rival=capacity // 3 if theme in ("rival", "mixed") else 0,
    )


def _wave(theme: str, number: int, capacity: int, rng: Random) -> Wave:
    """Together they ask for somewhat more than there is room for."""
    pods = max(4, int(capacity * rng.uniform(0.25, 0.4)))
    leave = 0 if number == 0 else rng.randrange(1, pods)
    gangs: tuple[tuple[int, int], ...] = ()
    if theme == "gangs" or (theme == "mixed" and rng.random() < 0.5):
        gangs = tuple(_gangs(max(2, pods * 3 // 4), rng))
        pods = max(2, pods - sum(size for size, _ in gangs))
    hostile = theme == "hostile"
    return Wave(
        pods,
        leave,
        _deed(theme, number, pods + sum(size for size, _ in gangs), rng),
        gangs,
        monsters=rng.randrange(1, 5) if hostile else 0,
        broken=_broken(number, rng) if hostile else (),
    )


def _preemption_wave(theme: str, number: int, capacity: int, rng: Random) -> Wave:
    """First the nodes are filled, then pods and gangs of high priority come, each time for a quarter of the nodes."""
    allowed = rng.choice((0, 1, 3, 100))
    if number == 0:
        gangs = tuple(_gangs(max(2, capacity // 4), rng))
        pods = max(2, capacity - sum(size for size, _ in gangs))
        return Wave(pods, gangs=gangs, allowed=allowed)
    gangs = tuple(_gangs(max(2, capacity // 8), rng))
    kind = rng.choice(("kill at eviction", "kill at eviction", "forsake", "forsake", "kill", "term"))
    deed = Deed(kind, rng.randrange(1, max(2, capacity // 8)), rng.uniform(0.5, 4.0))
    return Wave(max(2, capacity // 8), 0, deed, gangs, high=True, allowed=allowed)


def _gangs(members: int, rng: Random) -> Iterator[tuple[int, int]]:
    """Gangs of together about so many members; a third of them may start with fewer than all."""
    while members > 1:
        size = min(members, rng.randrange(2, 13))
        yield size, max(2, size - rng.randrange(1, 4)) if rng.random() < 0.33 else size
        members -= size


def _broken(number: int, rng: Random) -> tuple[tuple[str, str], ...]:
    """Some from the beginning, and one more with each wave."""
    paths = rng.sample(OPTIONAL, 2 if number == 0 else 1)
    return tuple((path, rng.choice(("500", "hang", "garbage"))) for path in paths)


def _deed(theme: str, number: int, pods: int, rng: Random) -> Deed | None:
    kinds = {
        "server": ("server",),
        "etcd": ("etcd",),
        "leader": ("term", "pause", "deafen", "steal", "kill"),
        "mixed": (*_ANYWHERE, "kill"),
        "gangs": ("lose", "lose", "term", "kill"),
        "hostile": ("kill", "term"),
    }.get(theme, ())
    # One in the middle is enough for most; what the server does twice costs ten seconds.
    if theme == "gangs" and number != 1:
        return Deed("lose", rng.randrange(1, max(2, pods // 2)))
    if not kinds or number != 1:
        return None
    return Deed(rng.choice(kinds), rng.randrange(1, max(2, pods // 2)), rng.uniform(0.5, 4.0))


def _drizzle(rng: Random) -> Rates:
    """A little of everything, so that a kill is never the only thing that goes wrong."""
    return _rain(rng.choice((0.0, 0.002, 0.01)))


def _rain(rate: float) -> dict[str, Mapping[str, float]]:
    lossy = dict.fromkeys(("delay", "drop", "deaf", "cut", "429", "500", "500-done", "409", "410", "401"), rate)
    mild = dict.fromkeys(("delay", "drop", "deaf", "500"), rate / 2)
    return {"bind": lossy, "status": lossy, "event": lossy, "get": lossy, "list": lossy, "write": lossy, "lease": mild}


def _refusals(rng: Random) -> Rates:
    """Evictions meet every fault, and one in five is refused."""
    rate = rng.uniform(0.02, 0.06)
    faults = dict.fromkeys(("delay", "drop", "deaf", "cut", "429", "500", "500-done", "409"), rate)
    return {**_rain(rng.choice((0.0, 0.005))), "evict": faults}


def _storm(rate: float) -> dict[str, Mapping[str, float]]:
    often = dict.fromkeys(("watch-cut", "watch-freeze", "watch-gone", "watch-replay", "watch-slow"), rate)
    rare = dict.fromkeys(("watch-410", "watch-500", "watch-401"), rate / 4)
    return {"watch pods": {**often, **rare}, "watch nodes": {**often, **rare}}


def _rates(theme: str, rng: Random) -> Rates:
    if theme == "rain":
        return _rain(rng.uniform(0.01, 0.04))
    if theme == "watch":
        return _storm(0.16)
    if theme == "mixed":
        return {**_rain(rng.uniform(0.0, 0.02)), **_storm(rng.uniform(0.0, 0.15))}
    if theme == "preempt":
        return _refusals(rng)
    return _drizzle(rng)
