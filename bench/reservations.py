"""What reservations cost, in virtual time: `python -m bench.reservations`, about a minute.

Each story is a small cluster of nodes with eight GPUs, some held by services, with a stream of one-GPU jobs that would
use the rest all the time, and with gangs that wait. Of each hour of it is told which share of the GPUs that the stream
could have used was idle for reservations that came no closer, and for how long at most a pod of priority 1000 waited
beside a free GPU. The first has to stay within a quarter, the second within half a minute; else the exit code is 1. So
has what was idle over the whole story for gangs that were not placed in the end, whether they came closer or not.

"Closer" is judged here by itself: room for another sixteenth of the gang's members. So is the use of a reservation: it
was of use if its gang was placed, no smaller than it was while it held.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping

import msgspec

from kubenexus.api.core import Pod
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.decision_fixture import PROFILE, DecisionFixture

STEP = 10.0  # seconds between two looks
HOUR = 3600.0
MOST_IDLE = 0.25
LONGEST_WAIT = 30.0
GPUS = 8  # of a node
FINITE, SERVICE = "Never", "Always"


class Hold(msgspec.Struct):
    """A gang that kept room without a break, for as many members as `size` says at most."""

    gang: str
    placed: bool = False
    size: int = 0


class Stretch(msgspec.Struct):
    """A part of it, until the gang came closer."""

    hold: Hold
    ready: float
    closer: bool = False

    @property
    def in_vain(self) -> bool:
        return not self.closer and not self.hold.placed


class Look(msgspec.Struct, frozen=True):
    """`usable`: GPUs that nothing but the stream takes. `idle`: those of them that are free while jobs want them."""

    usable: int
    idle: int
    stretch: Stretch | None


class Scene(msgspec.Struct):
    """What a story is made of. `held` GPUs belong to pods that stay, which say that they end, or not (`policy`). Gangs
    wait in `gangs` (name to size) from the beginning; `arrive` brings others. Small jobs run for `runs` seconds."""

    nodes: int = 4
    held: int = 12
    policy: str = FINITE
    gangs: dict[str, int] = {}
    arrive: Callable[["Story"], None] | None = None
    runs: tuple[float, float] = (60.0, 120.0)
    probes: bool = True
    hours: float = 3.0


class Story:
    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene, self.dice, self.fixture = scene, random.Random(seed), DecisionFixture()
        self.looks: list[Look] = []
        self.ends: dict[str, float] = {}
        self.gangs: dict[str, list[Pod]] = {}
        self.started = self.numbers = 0
        self.longest_wait = 0.0
        self._stretch: Stretch | None = None
        self.fixture.nodes(*(a_node(f"n{i}", cpu=64, gpu=GPUS) for i in range(scene.nodes)))
        self.fixture.come(*(a_pod(f"stays-{i}", gpu=1, restart_policy=scene.policy) for i in range(scene.held)))
        self.fixture.work()
        for name, size in scene.gangs.items():
            self.gang(name, size)
            self.fixture.clock.advance(1.0)

    @property
    def now(self) -> float:
        return self.fixture.clock.now()

    @property
    def total(self) -> int:
        return self.scene.nodes * GPUS

    def play(self) -> None:
        end, probe = self.now + self.scene.hours * HOUR, self.now + 1200.0
        while self.now < end:
            self._over()
            self._stream()
            if self.scene.arrive is not None:
                self.scene.arrive(self)
            if self.scene.probes and self.now >= probe:
                probe = self.now + 600.0
                self._come("urgent", 60.0, priority=1000)
            self.fixture.work()
            self._look()
            self.fixture.clock.advance(STEP)

    # --- what happens ---------------------------------------------------------------------------------------------

    def gang(self, name: str, size: int, namespace: str = "default", priority: int = 0) -> None:
        fields = {"gpu": 1, "namespace": namespace, "priority": priority, "restart_policy": FINITE}
        self.gangs[name] = [a_member(f"{name}-{i}", name, size, **fields) for i in range(size)]
        self.fixture.come(*self.gangs[name])

    def shrink(self, name: str, size: int) -> None:
        """So many members stay, and need no others."""
        namespace = self.gangs[name][0].metadata.namespace
        self.drop(name)
        self.gang(name, size, namespace)

    def drop(self, name: str) -> None:
        self.fixture.end(*(pod.key for pod in self.gangs.pop(name)))

    def runs(self, name: str) -> bool:
        return bool(self.fixture.pods[self.gangs[name][0].key].spec.node_name)

    def _come(self, kind: str, seconds: float, priority: int = 0) -> None:
        self.numbers += 1
        name = f"{kind}-{self.numbers}"
        self.fixture.come(a_pod(name, gpu=1, priority=priority, restart_policy=FINITE))
        self.ends[name] = -seconds  # it has not begun

    def _stream(self) -> None:
        waiting = len(self._waiting("small"))
        for _ in range(self.total + 4 - waiting):
            self._come("small", self.dice.uniform(*self.scene.runs))

    def _over(self) -> None:
        """Jobs that began are given their end, and those whose time has come end."""
        placed = self.fixture.where()
        for name in [name for name in self.ends if name in placed]:
            if self.ends[name] < 0:
                self.ends[name] = self.now - self.ends[name]
            elif self.ends[name] <= self.now:
                del self.ends[name]
                self.fixture.end(name)
        for name in [name for name in self.gangs if self.runs(name)]:
            due = self.ends.setdefault(f"gang {name}", self.now + self.dice.uniform(300.0, 1200.0))
            if due <= self.now:
                self.drop(name)

    def _waiting(self, kind: str) -> list[str]:
        placed = self.fixture.where(kind)
        return [name for name in self.ends if name.startswith(kind) and name not in placed]

    # --- what is seen ---------------------------------------------------------------------------------------------

    def _look(self) -> None:
        placed = self.fixture.where()
        free = self.total - len(placed)
        others = sum(not name.startswith(("small", "urgent")) for name in placed)
        held_back = sum(self._held_back(name) for name in self._waiting("small"))
        self._follow()
        stretch = self._stretch
        self.looks.append(Look(self.total - others, min(free, held_back) if stretch else 0, stretch))
        for name in self._waiting("urgent"):
            self.longest_wait = max(self.longest_wait, self._waited(name) if free else 0.0)

    def _held_back(self, name: str) -> bool:
        decision = self.fixture.queue.last_decision(f"default/{name}")
        waits = self.fixture.queue.state(f"default/{name}") in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF)
        return waits and decision is not None and decision.diagnosis.held_back

    def _waited(self, name: str) -> float:
        queued = self.fixture.queue._queued_jobs[f"default/{name}"]
        return self.now - queued.added_at

    def _follow(self) -> None:
        """Which gang keeps room, and whether it has come closer."""
        held, last = self.fixture.reservations.held(PROFILE), self._stretch
        if last is not None and (held is None or held.gang != last.hold.gang):
            name = last.hold.gang.rpartition("/")[2]
            last.hold.placed = name in self.gangs and self.runs(name) and len(self.gangs[name]) >= last.hold.size
            self.started += last.hold.placed
            self._stretch = last = None
        if held is None:
            return
        if last is None:
            self._stretch = Stretch(Hold(held.gang), held.ready)
        elif held.ready >= last.ready + 1 / 16:
            last.closer = True
            self._stretch = Stretch(last.hold, held.ready)
        if self._stretch is not None:
            self._stretch.hold.size = max(self._stretch.hold.size, held.needed)

    def hours(self) -> Iterator[float]:
        """The share that was idle for nothing, for each hour that begins at any look."""
        width = int(HOUR / STEP)
        idle = usable = 0
        for i, look in enumerate(self.looks):
            idle += look.idle * (look.stretch is not None and look.stretch.in_vain)
            usable += look.usable
            if i >= width:
                past = self.looks[i - width]
                idle -= past.idle * (past.stretch is not None and past.stretch.in_vain)
                usable -= past.usable
            if i >= width - 1:
                yield idle / max(usable, 1)

    @property
    def whole(self) -> float:
        """The share that was idle for gangs that were not placed, closer or not, over all of it."""
        idle = sum(look.idle for look in self.looks if look.stretch is not None and not look.stretch.hold.placed)
        return idle / max(sum(look.usable for look in self.looks), 1)


# --- the stories ----------------------------------------------------------------------------------------------------


def renamed(every: float, sizes: tuple[int, ...], namespaces: int = 1) -> Callable[[Story], None]:
    """A tenant that deletes its gang after a while and makes another one under a new name, in another size."""

    def arrive(story: Story) -> None:
        number = int(story.now // every)
        name = f"g{number}"
        for old in [each for each in story.gangs if each != name and each.startswith("g") and not story.runs(each)]:
            story.drop(old)
        if name not in story.gangs:
            story.gang(name, sizes[number % len(sizes)], f"tenant-{number % namespaces}")

    return arrive


def seeming(every: float = 280.0, own: int = 14) -> Callable[[Story], None]:
    """A tenant that fills GPUs with pods of its own and takes them away two by two, just in time, so that its gang
    seems to come closer; before the last one it begins again."""
    left, due, rounds = list[str](), [0.0], [0]

    def arrive(story: Story) -> None:
        if story.now < due[0]:
            return
        due[0] = story.now + every
        if len(left) > 2:
            story.fixture.end(left.pop(), left.pop())
            return
        story.fixture.end(*left)
        for name in list(story.gangs):
            story.drop(name)
        rounds[0] += 1
        left[:] = [f"own{rounds[0]}-{i}" for i in range(own)]
        story.fixture.come(*(a_pod(name, gpu=1, priority=10, restart_policy=FINITE) for name in left))
        story.gang(f"round{rounds[0]}", story.total - story.scene.held)

    return arrive


def shrinking(after: float = 280.0, gangs: int = 6, size: int = 24) -> Callable[[Story], None]:
    """A tenant that has several gangs, and shrinks the one that holds to two members just before its time is over, so
    that it is placed. It does nothing there, and is made again, as large as before."""
    holds, since = "", 0.0

    def arrive(story: Story) -> None:
        nonlocal holds, since
        for name in [name for name in story.gangs if story.runs(name)]:
            story.drop(name)
        while len(story.gangs) < gangs:
            story.numbers += 1
            story.gang(f"g{story.numbers}", size, "tenant")
        held = story.fixture.reservations.held(PROFILE)
        name = "" if held is None else held.display_name.partition("/")[2]
        if name != holds:
            holds, since = name, story.now
        elif name and story.now >= since + after:
            story.shrink(name, 2)

    return arrive


def at_random(dice: random.Random) -> Scene:
    nodes = dice.randint(2, 6)
    free = dice.randint(nodes * GPUS // 2, nodes * GPUS)
    coming, leaving = dice.uniform(200.0, 1500.0), dice.choice([0.0, 150.0, 500.0])

    def arrive(story: Story) -> None:
        if leaving:
            for name in [each for each in story.gangs if not story.runs(each)]:
                if story.dice.random() < STEP / leaving:
                    story.drop(name)
        if len(story.gangs) < 6 and story.dice.random() < STEP / coming:
            story.numbers += 1
            size = story.dice.randint(2, free + 4)
            story.gang(f"g{story.numbers}", size, f"tenant-{story.dice.randint(0, 3)}", story.dice.choice([0, 0, 100]))

    runs = dice.choice([(60.0, 180.0), (300.0, 900.0), (600.0, 3600.0)])
    return Scene(nodes, nodes * GPUS - free, dice.choice([FINITE, FINITE, SERVICE]), arrive=arrive, runs=runs)


STORIES: dict[str, Scene] = {
    "two gangs behind services": Scene(policy=SERVICE, gangs={"a": 24, "b": 23}),
    "two gangs behind pods that say they end": Scene(gangs={"a": 24, "b": 23}),
    "ten gangs of all sizes": Scene(gangs={f"a{i}": 21 + i for i in range(10)}),
    "a new gang every three minutes": Scene(arrive=renamed(180.0, (24, 23, 30))),
    "a new gang every five minutes, of forty tenants": Scene(arrive=renamed(310.0, (22, 28), namespaces=40)),
    "a gang that seems to come closer": Scene(arrive=seeming(), hours=8.0),
    "a gang that fits once the stream makes way": Scene(gangs={"a": 20}, runs=(300.0, 1500.0)),
    **{f"random {seed}": at_random(random.Random(seed)) for seed in range(10)},
    "gangs that shrink just before their time is over": Scene(arrive=shrinking()),
}


def main(stories: Mapping[str, Scene] = STORIES) -> int:
    bad = 0
    print(
        f"{'story':<50} {'idle in the worst hour':>23} {'idle in all':>12} {'urgent waited':>14} {'gangs started':>14}"
    )
    for seed, (name, scene) in enumerate(stories.items()):
        story = Story(scene, seed)
        story.play()
        worst = max(story.hours(), default=0.0)
        wrong = max(worst, story.whole) > MOST_IDLE or story.longest_wait > LONGEST_WAIT
        bad += wrong
        waited, mark = f"{story.longest_wait:.0f} s", "  too much" if wrong else ""
        print(f"{name:<50} {worst:>22.1%} {story.whole:>12.1%} {waited:>14} {story.started:>14}{mark}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
