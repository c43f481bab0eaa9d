"""Rows that counting decides: requests for a number of whole devices, without constraints between them.

A node serves such requests if enough devices that match are free, for each request and for each set of requests
together (Hall's condition). Which devices match is a word for each machine (`row_states`), found once; then all rows
are an AND and a population count. Rows that this does not decide, because a selector fails, or a device is shared or a
part of a card, are left to the search.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubenexus.api.devices.resource_claim import MAX_RESULTS
from kubenexus.base.arrays import BoolColumn, grow
from kubenexus.plugins.dynamic_resources.claim_requests import CompiledClaim, CompiledRequest
from kubenexus.plugins.dynamic_resources.row_states import WORD, RowStates
from kubenexus.plugins.dynamic_resources.tolerations import tolerated
from kubenexus.plugins.dynamic_resources.work import DEVICE, MAX_STEPS, STATE, SelectorAnswers, Work
from kubenexus.state.claims.device import PoolDevice
from kubenexus.state.claims.pools import Pool

_MAX_REQUESTS: Final = 4  # of a pod: 15 sets of them are counted


def countable_requests(claims: Sequence[CompiledClaim]) -> tuple[CompiledRequest, ...]:
    """Returns the requests of claims that counting can decide, or () if the search has to."""
    found: list[CompiledRequest] = []
    for claim in claims:
        requests = [alternatives[0] for alternatives in claim.requests]
        numbers = sum(each.count for each in requests)
        if claim.constraints or numbers > MAX_RESULTS or any(each.parent or _is_special(each) for each in requests):
            return ()
        found += requests
    return tuple(found) if len(found) <= _MAX_REQUESTS else ()


def _is_special(request: CompiledRequest) -> bool:
    broken = any(each.selector.problem for each in request.selectors)
    return broken or request.every or request.admin or request.request.capacity is not None


class DeviceCounts:
    """Which devices match each set of requests, as words by number of shapes, and how many the set needs."""

    def __init__(self, requests: Sequence[CompiledRequest]) -> None:
        self._requests = requests
        sets = range(1, 1 << len(requests))
        self._needs = [sum(each.count for i, each in enumerate(requests) if chosen >> i & 1) for chosen in sets]
        self._generation = -1
        self._words: NDArray[np.uint64] = np.zeros((len(self._needs), 0), np.uint64)
        self._decides: BoolColumn = np.zeros(0, np.bool_)
        self._looked: BoolColumn = np.zeros(0, np.bool_)  # machines whose devices were looked at
        self._all = 0  # the machines below this number were all looked at

    def decide(self, rows: NDArray[np.int64], states: RowStates, work: Work) -> tuple[BoolColumn, BoolColumn]:
        """Returns which rows have enough free devices, and for which of the rows that is known. Looks at new machines
        as long as the work lasts; `looked_at` says which rows have others."""
        self._fit(states)
        shapes, free = states.shapes[rows], ~states.words[rows]
        if self._all < len(states.examples):
            self._look(np.unique(shapes[~self._looked[shapes]]).tolist(), states, work)
        enough: BoolColumn = np.ones(len(rows), np.bool_)
        for words, number in zip(self._words, self._needs, strict=True):
            enough &= np.bitwise_count(words[shapes] & free) >= number
        return enough, self._decides[shapes]

    def looked_at(self, rows: NDArray[np.int64], states: RowStates) -> BoolColumn | None:
        """Returns the rows whose machines `decide` looked at, or None for all."""
        return None if self._all == len(states.examples) else self._looked[states.shapes[rows]]

    def decide_one(self, row: int, states: RowStates) -> bool | None:
        """Returns the same for one row, as plain numbers; None if it is not known."""
        if self._generation != states.generation or len(self._decides) < len(states.examples):
            self._fit(states)
        shapes, free = states.shapes.item(row), ~states.words.item(row)
        if not self._looked.item(shapes):
            self._look_at(shapes, states, Work())
        if not self._decides.item(shapes):
            return None
        for i, number in enumerate(self._needs):  # noqa: SIM110  # a generator takes longer, and most pods need one
            if (self._words.item(i, shapes) & free).bit_count() < number:
                return False
        return True

    def _fit(self, states: RowStates) -> None:
        """Makes room for the machines that are known now."""
        if self._generation != states.generation:
            self._generation, self._all = states.generation, 0
            self._looked[:] = False
        number = len(states.examples)
        if len(self._decides) < number:
            self._words = grow(self._words, 2 * number)
            self._decides = grow(self._decides, 2 * number)
            self._looked = grow(self._looked, 2 * number)

    def _look(self, machines: Sequence[int], states: RowStates, work: Work) -> None:
        for shapes in machines:
            if work.halved:
                return
            self._look_at(shapes, states, work)
        number = len(states.examples)
        if self._looked[:number].all():
            self._all = number

    def _look_at(self, shapes: int, states: RowStates, work: Work) -> None:
        words = self._matching(states.examples[shapes], work)
        self._looked[shapes], self._decides[shapes] = True, words is not None
        for i in range(len(self._needs)):
            self._words[i, shapes] = 0 if words is None else _union(words, i + 1)

    def _matching(self, pools: Sequence[Pool], work: Work) -> list[int] | None:
        """Returns the devices that match each request, or None if counting them is not enough."""
        work.spend(STATE)
        devices = [(pool.id[0], device) for pool in pools for each in pool.slices for device in each.devices]
        if len(devices) > WORD or any(pool.invalid for pool in pools):
            return None
        if any(pool.selects_by_device for pool in pools):
            return None
        words, answers = [0] * len(self._requests), SelectorAnswers(work)
        for position, (driver, device) in enumerate(devices):
            work.spend(DEVICE)
            for i, request in enumerate(self._requests):
                answer = None if work.left < -MAX_STEPS else _matches(request, device, driver, answers)
                if answer is None:
                    return None  # or the search has to find that it takes too many steps
                words[i] |= answer << position
        return words


def _matches(request: CompiledRequest, device: PoolDevice, driver: str, answers: SelectorAnswers) -> bool | None:
    """Returns whether a request can have the device, or None if that depends on more."""
    for each in request.selectors:
        answer = answers.matches(each.selector, device, driver)
        if not isinstance(answer, bool):
            return None
        if not answer:
            return False
    traits = device.traits
    if traits.shared or traits.consumes or not traits.plain:
        return None
    return tolerated(traits.taints, request.request.tolerations)


def _union(words: Sequence[int], chosen: int) -> int:
    found = 0
    for i, word in enumerate(words):
        if chosen >> i & 1:
            found |= word
    return found
