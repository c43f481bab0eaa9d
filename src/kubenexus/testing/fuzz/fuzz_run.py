"""The fuzz run: a ledger and its reference, the delivery of events, and a scheduler."""

import time
import warnings
from random import Random
from typing import Any, Final

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.resource_claim import DeviceClass
from kubenexus.state.ledger import Ledger
from kubenexus.testing.fuzz import state_invariants
from kubenexus.testing.fuzz.delivery import EventDelivery
from kubenexus.testing.fuzz.guard import ExceptionGuard
from kubenexus.testing.fuzz.reference_ledger import ReferenceLedger
from kubenexus.testing.fuzz.results import FuzzResults
from kubenexus.testing.fuzz.scheduling import FuzzScheduler
from kubenexus.testing.fuzz.stream import FuzzEvent, Kind, event

BOOKS_EVERY: Final = 5000
DECISIONS: Final = 0.3  # for each event


class FuzzRun:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.ledger = Ledger()
        self.reference = ReferenceLedger()
        self._guard = ExceptionGuard()
        self._delivery = EventDelivery(self._guard, self.ledger, self.reference)
        self._scheduler = FuzzScheduler(self._guard, self.ledger, self.reference)

    @property
    def tally(self) -> FuzzResults:
        return self._guard.tally

    def run(self, objects: int, first: int = 0) -> FuzzResults:
        """Processes all objects up to this number. A warning, such as NumPy's about an overflow, counts as an
        exception."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for number in range(first, objects):
                self.step(event(self.seed, number))
                if number % BOOKS_EVERY == BOOKS_EVERY - 1:
                    self.close_books()
            self.close_books()
        return self.tally

    def step(self, heard: FuzzEvent) -> None:
        """Processes one event, and sometimes a decision after it."""
        self._guard.event = heard
        rng, begin = Random(f"{self.seed}/{heard.number}/acts"), time.perf_counter()
        self._delivery.hear(heard)
        self._guard.spent(heard.way, begin)
        if self.reference.waiting and rng.random() < DECISIONS:
            self._scheduler.decide(rng, self._delivery.last, self._delivery.way_of)
        self._tidy()

    def close_books(self) -> None:
        """Checks that the ledger equals its reference, and equals a ledger rebuilt from the accepted objects."""
        for wrong in state_invariants.recount_differences(self.ledger, self.reference):
            self._guard.broken("the books", wrong)
        again = self._guard.guarded(
            "rebuild", lambda: state_invariants.rebuilt_ledger(self.reference, Random(self.seed))
        )
        if again is not None:
            self._guard.broken("the digest", state_invariants.digests(self.ledger, again))

    def _tidy(self) -> None:
        """Deletes the oldest objects beyond a limit: objects with mutated names are never deleted by later events."""
        tables: tuple[tuple[Kind, dict[str, Any], int], ...] = (
            (Pod, self.reference.waiting, 300),
            (Pod, self.reference.placed, 500),
            (Pod, self.reference.blocked, 20),
            (Node, self.reference.nodes, 70),
            (DeviceClass, self.reference.classes, 20),
        )
        for kind, table, most in tables:
            if len(table) > most:
                self._delivery.gone(kind, next(iter(table)))
