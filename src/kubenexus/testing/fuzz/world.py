"""The world of the fuzz run: a ledger and its twin, an ear and a planner, and the events that come upon them."""

import time
import warnings
from random import Random
from typing import Any, Final

from kubenexus.api.core import DeviceClass, Node, Pod
from kubenexus.state.ledger import Ledger
from kubenexus.testing.fuzz import books
from kubenexus.testing.fuzz.deciding import Deciding
from kubenexus.testing.fuzz.guard import Guard
from kubenexus.testing.fuzz.hearing import Hearing
from kubenexus.testing.fuzz.stream import Event, Kind, event
from kubenexus.testing.fuzz.tally import Tally
from kubenexus.testing.fuzz.twin import Twin

BOOKS_EVERY: Final = 5000
DECISIONS: Final = 0.3  # for each event


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.ledger = Ledger()
        self.twin = Twin()
        self._guard = Guard()
        self._hearing = Hearing(self._guard, self.ledger, self.twin)
        self._deciding = Deciding(self._guard, self.ledger, self.twin)

    @property
    def tally(self) -> Tally:
        return self._guard.tally

    def run(self, objects: int, first: int = 0) -> Tally:
        """All objects up to this number. A warning (NumPy's, of an overflow, say) counts as an exception."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for number in range(first, objects):
                self.step(event(self.seed, number))
                if number % BOOKS_EVERY == BOOKS_EVERY - 1:
                    self.close_books()
            self.close_books()
        return self.tally

    def step(self, heard: Event) -> None:
        """One event, and now and then a decision after it."""
        self._guard.event = heard
        rng, begin = Random(f"{self.seed}/{heard.number}/acts"), time.perf_counter()
        self._hearing.hear(heard)
        self._guard.spent(heard.way, begin)
        if self.twin.waiting and rng.random() < DECISIONS:
            self._deciding.decide(rng, self._hearing.last, self._hearing.way_of)
        self._tidy()

    def close_books(self) -> None:
        """Everything is accounted for, and a ledger told only what was accepted comes to the same."""
        for wrong in books.counted_anew(self.ledger, self.twin):
            self._guard.broken("the books", wrong)
        again = self._guard.guarded("rebuild", lambda: books.rebuilt(self.twin, Random(self.seed)))
        if again is not None:
            self._guard.broken("the digest", books.digests(self.ledger, again))

    def _tidy(self) -> None:
        """Odd names are never heard of again, so somebody has to delete what bears them: the oldest goes first."""
        tables: tuple[tuple[Kind, dict[str, Any], int], ...] = (
            (Pod, self.twin.waiting, 300),
            (Pod, self.twin.placed, 500),
            (Pod, self.twin.fenced, 20),
            (Node, self.twin.nodes, 70),
            (DeviceClass, self.twin.classes, 20),
        )
        for kind, table, most in tables:
            if len(table) > most:
                self._hearing.gone(kind, next(iter(table)))
