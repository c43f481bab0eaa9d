"""The growing run: grows fields of random objects until the budget refuses them or an API server would reject their
size, and measures the longest turn of the loop.

Each round depends only on the seed and its number. The limits are on CPU time of this thread, which does not depend on
the load of the machine, and on memory beyond that of the process before the round.
"""

from collections.abc import Iterator
from random import Random
from typing import Final

import msgspec

from kubenexus.base import gc_tuning
from kubenexus.testing.large.large_cluster import NODES, LargeCluster, run_on_large_cluster
from kubenexus.testing.large.pods import PODS, Json
from kubenexus.testing.large.scenarios import LargeScenario, NotPlacedError, dimensions, fits, grown, play, runs, waits

SECONDS: Final = 0.250
MEGABYTES: Final = 200.0
_FIRST, _FACTOR = 16, (1.5, 3.0)


class Bounds(msgspec.Struct, frozen=True):
    """The limits of a turn."""

    seconds: float = SECONDS
    megabytes: float = MEGABYTES


class Worst(msgspec.Struct):
    """The longest turn and the most memory of one dimension, with the number of entries."""

    scenarios: int = 0
    refused: int = 0  # the fewest entries that the budget refused; 0 if none
    seconds: float = 0.0
    step: str = ""
    number: int = 0
    megabytes: float = 0.0


class GrowingRun:
    """`worst` by what grew; `broken` are the rounds that exceeded a limit, with a description."""

    def __init__(self, seed: int, bounds: Bounds | None = None) -> None:
        self.seed = seed
        self.worst: dict[tuple[str, str], Worst] = {}
        self.broken: list[tuple[int, str]] = []
        self._bounds = bounds or Bounds()

    def run(self, rounds: range, nodes: int = NODES) -> None:
        async def all_rounds(cluster: LargeCluster) -> None:
            for number in rounds:
                await self._round(cluster, number)

        gc_tuning.freeze_after_import()
        run_on_large_cluster(all_rounds, nodes)

    async def _round(self, cluster: LargeCluster, number: int) -> None:
        rng = Random(f"{self.seed}/{number}/grow")
        about, dimension = rng.choice(list(dimensions()))
        extras = rng.sample(sorted(PODS), rng.choice((0, 0, 1, 2)))
        entries = rng.randrange(1, _FIRST)
        while True:
            try:
                scenario = await _played(cluster, about, dimension, entries, extras)
            except NotPlacedError as held:
                self.broken.append((number, f"{about}, {entries} {dimension}: {held}"))
                return
            if scenario is None:
                return
            self._judge(number, about, dimension, entries, scenario)
            if scenario.refused:
                return
            entries = int(entries * rng.uniform(*_FACTOR)) + 1

    def _judge(self, number: int, about: str, dimension: str, entries: int, scenario: LargeScenario) -> None:
        worst, longest = self.worst.setdefault((about, dimension), Worst()), scenario.longest
        worst.scenarios += 1
        if scenario.refused:
            worst.refused = min(entries, worst.refused or entries)
        if longest.seconds > worst.seconds:
            worst.seconds, worst.step, worst.number = longest.seconds, longest.step, entries
        worst.megabytes = max(worst.megabytes, scenario.largest.megabytes)
        if longest.seconds > self._bounds.seconds or scenario.largest.megabytes > self._bounds.megabytes:
            took = f"{longest.seconds * 1000:.0f} ms when {longest.step}, {scenario.largest.megabytes:.0f} MB"
            self.broken.append((number, f"{about}, {entries} {dimension}: {took}"))

    def report(self) -> Iterator[str]:
        """Yields the worst of each dimension, the longest turns first."""
        head = ("scenes", "refused at", "entries", "ms", "MB")
        yield f"{'what grew':<64}" + "".join(f"{title:>12}" for title in head) + "  when"
        for (about, dimension), worst in sorted(self.worst.items(), key=lambda item: -item[1].seconds):
            refused = f"{worst.refused:,}" if worst.refused else "-"
            cells = (f"{worst.scenarios:,}", refused, f"{worst.number:,}")
            figures = (f"{worst.seconds * 1000:.0f}", f"{worst.megabytes:.0f}")
            yield (
                f"  {about + ': ' + dimension:<62}"
                + "".join(f"{c:>12}" for c in (*cells, *figures))
                + f"  {worst.step}"
            )
        for number, what in self.broken:
            yield f"TOO LONG: {what}"
            yield f"    again: python -m kubenexus.testing.fuzz --grow --seed {self.seed} --round {number}"
        yield f"bounds broken: {len(self.broken)}" if self.broken else "no turn took longer than it may"


async def _played(
    cluster: LargeCluster, about: str, dimension: str, entries: int, extras: list[str]
) -> LargeScenario | None:
    """Runs the scenario with one field grown, on an object that also has entries in some other fields."""
    if about in ("another object", "many objects"):
        return await play(cluster, about, dimension, entries)
    running = about == "a pod that runs"
    pod = grown(PODS[dimension], entries, at="node-1" if running else "", uid=f"-{entries}")
    if not fits(pod):
        return None
    for extra in extras:
        _mixed(pod, extra, dimension)
    if not fits(pod):
        pod = grown(PODS[dimension], entries, at="node-1" if running else "", uid=f"-{entries}")
    return await (runs(cluster, pod) if running else waits(cluster, pod))


def _mixed(pod: Json, extra: str, dimension: str) -> None:
    """Adds a dozen entries of another field, unless that would replace the field that grew."""
    before = msgspec.json.encode(pod)
    other = msgspec.json.decode(before)
    PODS[extra](other, 12)
    if extra != dimension and len(msgspec.json.encode(other)) > len(before):
        for part in ("metadata", "spec", "status"):
            pod[part] = other[part]
