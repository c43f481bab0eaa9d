"""Small gangs on small clusters, and how many members can be placed, found out by trying everything.

The twin knows nothing of the planner: a state is how many members of each kind sit on each node; from it every member
that may be added now, by the rules as kube-scheduler applies them one pod after the other, is added. The largest state
that can be reached is the answer.
"""

from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod, TopologySpreadConstraint
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework.job import Job
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod

RACK = "topology.kubernetes.io/rack"
TIES = ("", "apart", "near", "even")


class Place(NamedTuple):
    """A node: what it has, where it is ("" for nowhere), and how many pods of the gang's application run there."""

    name: str
    cpu: int
    gpu: int
    zone: str
    rack: str
    others: int = 0

    def domain(self, key: str) -> str:
        return {HOSTNAME: self.name, ZONE: self.zone, RACK: self.rack}[key]


class Kind(NamedTuple):
    """Members of one kind: how many, and what each asks for."""

    number: int
    cpu: int
    gpu: int = 0
    port: int = 0


class GangInstance(NamedTuple):
    """`tie` binds all members to each other (and to the others of their application) over `key`."""

    places: tuple[Place, ...]
    kinds: tuple[Kind, ...]
    minimum: int
    tie: str = ""
    key: str = ZONE
    skew: int = 1
    required: str = ""

    @property
    def total(self) -> int:
        return sum(kind.number for kind in self.kinds)

    def nodes(self) -> list[Node]:
        return [_node(place) for place in self.places]

    def others(self) -> list[Pod]:
        there = [(place, i) for place in self.places for i in range(place.others)]
        return [a_pod(f"{place.name}-{i}", labels={"app": "gang"}, node=place.name) for place, i in there]

    def job(self) -> Job:
        pods = [self._member(k, i) for k, kind in enumerate(self.kinds) for i in range(kind.number)]
        return Job("default/gang", tuple(pods), self.minimum, TopologyRequest(required=self.required))

    def _member(self, k: int, i: int) -> Pod:
        kind, term = self.kinds[k], f"app=gang per {self.key}"
        spread = TopologySpreadConstraint(
            max_skew=self.skew,
            topology_key=self.key,
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector(match_labels={"app": "gang"}),
        )
        return a_pod(
            f"m{k}-{i}",
            labels={"app": "gang"},
            cpu=kind.cpu,
            gpu=kind.gpu or None,
            ports=[kind.port] if kind.port else [],
            near=[term] if self.tie == "near" else [],
            apart=[term] if self.tie == "apart" else [],
            topology_spread_constraints=[spread] if self.tie == "even" else [],
        )

    # --- the answer -----------------------------------------------------------------------------------------------

    def sites(self) -> Iterator[tuple[Place, ...]]:
        """The sets of nodes within one of which all members have to be."""
        if not self.required:
            yield self.places
            return
        for value in sorted({place.domain(self.required) for place in self.places} - {""}):
            yield tuple(place for place in self.places if place.domain(self.required) == value)

    def most(self, site: tuple[Place, ...]) -> int:
        """How many members the nodes of a site hold."""
        empty = tuple((0,) * len(self.kinds) for _ in site)
        seen, waiting, best = {empty}, [empty], 0
        while waiting:
            state = waiting.pop()
            best = max(best, sum(map(sum, state)))
            for after in self._after(state, site):
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return best

    def answer(self) -> int:
        """How many members are to be placed: 0 if fewer than the minimum could be."""
        most = max((self.most(site) for site in self.sites()), default=0)
        return most if most >= self.minimum else 0

    def allows(self, homes: dict[str, str]) -> bool:
        """Whether the members could have come to these nodes in some order."""
        wanted = tuple(
            tuple(
                sum(homes.get(f"default/m{k}-{i}") == place.name for i in range(kind.number))
                for k, kind in enumerate(self.kinds)
            )
            for place in self.places
        )
        empty = tuple((0,) * len(self.kinds) for _ in self.places)
        seen, waiting = {empty}, [empty]
        while waiting:
            state = waiting.pop()
            if state == wanted:
                return True
            for after in self._after(state, self.places):
                within = all(
                    a <= b
                    for mine, theirs in zip(after, wanted, strict=True)
                    for a, b in zip(mine, theirs, strict=True)
                )
                if within and after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return False

    def fits(self, homes: dict[str, str]) -> bool:
        """Whether no node has more than it can take; nothing else is looked at."""
        for place in self.places:
            there = [
                self.kinds[int(name.removeprefix("default/m").split("-")[0])]
                for name, node in homes.items()
                if node == place.name
            ]
            if sum(kind.cpu for kind in there) > place.cpu or sum(kind.gpu for kind in there) > place.gpu:
                return False
        return True

    # --- one member more ------------------------------------------------------------------------------------------

    def _after(self, state: "State", site: tuple[Place, ...]) -> "Iterator[State]":
        for at in range(len(site)):
            for k, kind in enumerate(self.kinds):
                if sum(counts[k] for counts in state) < kind.number and self._may(state, site, at, k):
                    mine = list(state[at])
                    mine[k] += 1
                    yield (*state[:at], tuple(mine), *state[at + 1 :])

    def _may(self, state: "State", site: tuple[Place, ...], at: int, k: int) -> bool:
        place, mine, kind = site[at], state[at], self.kinds[k]
        cpu = sum(count * each.cpu for count, each in zip(mine, self.kinds, strict=True)) + kind.cpu
        gpu = sum(count * each.gpu for count, each in zip(mine, self.kinds, strict=True)) + kind.gpu
        taken = {each.port for count, each in zip(mine, self.kinds, strict=True) if count and each.port}
        fits = cpu <= place.cpu and (not kind.gpu or gpu <= place.gpu) and kind.port not in taken
        return fits and self._tied(state, site, place)

    def _tied(self, state: "State", site: tuple[Place, ...], place: Place) -> bool:
        here, counts = place.domain(self.key), self._counts(state, site)
        if self.tie == "apart":
            return not here or not counts.get(here, 0)
        if self.tie == "near":
            return bool(here) and (not any(counts.values()) or counts.get(here, 0) > 0)
        if self.tie == "even":
            return bool(here) and counts[here] + 1 - min(counts.values()) <= self.skew
        return True

    def _counts(self, state: "State", site: tuple[Place, ...]) -> dict[str, int]:
        """Pods of the application in each domain of the key, members or not."""
        inside = {place.name: sum(state[i]) for i, place in enumerate(site)}
        counts: dict[str, int] = {}
        for place in self.places:
            domain = place.domain(self.key)
            if domain:
                counts[domain] = counts.get(domain, 0) + place.others + inside.get(place.name, 0)
        return counts


State = tuple[tuple[int, ...], ...]


def _node(place: Place) -> Node:
    return a_node(
        place.name, cpu=place.cpu, gpu=place.gpu, zone=place.zone, labels={RACK: place.rack} if place.rack else {}
    )


@st.composite
def puzzles(
    draw: st.DrawFn, ties: tuple[str, ...] = ("",), kinds: int = 1, levels: tuple[str, ...] = ("", ZONE, RACK)
) -> GangInstance:
    """Racks lie in zones; some nodes are in none."""
    number = draw(st.integers(1, 5))
    places = []
    for i in range(number):
        rack = draw(st.sampled_from(["", "r1", "r2", "r3"]))
        zone = {"": draw(st.sampled_from(["", "a", "b"])), "r1": "a", "r2": "a", "r3": "b"}[rack]
        others = draw(st.integers(0, 2)) if any(ties) else 0
        places.append(Place(f"n{i}", draw(st.integers(1, 5)), draw(st.integers(0, 3)), zone, rack, others))
    members = [
        Kind(
            draw(st.integers(1, 4)),
            draw(st.integers(1, 3)),
            draw(st.integers(0, 2)),
            draw(st.sampled_from([0, 0, 80, 81])),
        )
        for _ in range(kinds)
    ]
    total = sum(kind.number for kind in members)
    tie = draw(st.sampled_from(ties))
    return GangInstance(
        tuple(places),
        tuple(members),
        draw(st.integers(1, total)),
        tie,
        draw(st.sampled_from([ZONE, RACK, HOSTNAME])) if tie else ZONE,
        draw(st.integers(1, 2)),
        draw(st.sampled_from(levels)),
    )
