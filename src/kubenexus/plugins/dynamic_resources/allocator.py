"""The exact search: devices for all claims of a pod on one node, in kube-scheduler's order.

Claims, requests and alternatives are tried in their order, devices in that of driver, pool and slice; the first
solution counts. The search is exhaustive. It skips a device that is interchangeable with one that failed at the same
place, since it would fail, too. Its work is counted: beyond `work.MAX_STEPS` the attempt ends with an error, and a
search that an attempt has too few steps left for is given up (`SearchCut`).
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kubenexus.api.devices.resource_claim import MAX_RESULTS
from kubenexus.api.quantity import Quantity
from kubenexus.plugins.dynamic_resources.candidates import Candidate
from kubenexus.plugins.dynamic_resources.capacity import consumed_capacity, fits
from kubenexus.plugins.dynamic_resources.claim_requests import (
    ClaimError,
    CompiledClaim,
    CompiledRequest,
    exceeds_results,
)
from kubenexus.plugins.dynamic_resources.constraints import ConstraintState
from kubenexus.plugins.dynamic_resources.counters import NodeCounters
from kubenexus.plugins.dynamic_resources.tolerations import tolerated
from kubenexus.plugins.dynamic_resources.work import DEVICE, STATE, SelectorAnswers, Work
from kubenexus.state.claims.allocated import AllocatedDevices, DeviceId
from kubenexus.state.claims.pools import Pool

_TAKE: Final = 4  # steps, to take a device on trial
MAX_CHOICES: Final = 600  # requests and devices of one pod: each is a frame of the search


class Choice(NamedTuple):
    """A device for a request: its position among the candidates, and what it takes of a shared device."""

    request: CompiledRequest
    candidate: int
    consumed: Mapping[str, Quantity] | None


class Found(NamedTuple):
    """A solution: the choices of each claim, and the alternative of each request that was taken."""

    choices: tuple[tuple[Choice, ...], ...]
    alternatives: tuple[tuple[int, ...], ...]


class Place(NamedTuple):
    """The node that devices are searched for."""

    name: str
    labels: Mapping[str, str]


class NotOnNode(Exception):
    """The claims cannot be allocated on this node, for a reason other than a lack of devices."""


class SearchCut(Exception):
    """The attempt had fewer steps left than a search may take, and they did not last."""


class _TooManyDevices(Exception):
    """A claim would have more devices than it can hold, with any choice of devices."""


def allocate(
    claims: Sequence[CompiledClaim],
    pools: Sequence[Pool],
    candidates: Sequence[Candidate],
    allocated: AllocatedDevices,
    node: Place,
    work: Work,
) -> Found | None:
    """Returns devices for all claims, or None if the node lacks them. `pools` are all of the node, `candidates` the
    devices of the usable ones. `work` is what the attempt may still spend. Raises ClaimError, NotOnNode or SearchCut.
    """
    own = work.begin_search()
    try:
        return _Search(claims, pools, candidates, allocated, node, own).run()
    finally:
        work.spend(own.spent + STATE + DEVICE * len(candidates))


class _Search:
    """One search. It returns each device that it took on trial before it tries the next."""

    def __init__(
        self,
        claims: Sequence[CompiledClaim],
        pools: Sequence[Pool],
        candidates: Sequence[Candidate],
        allocated: AllocatedDevices,
        node: Place,
        work: Work,
    ) -> None:
        self._claims = claims
        self._pools = pools
        self._candidates = candidates
        self._allocated = allocated
        self._node = node
        self._work, self._answers = work, SelectorAnswers(work)
        self._taken: dict[DeviceId, list[int]] = {}  # whole devices, and the claims that take them
        self._shares: dict[DeviceId, list[dict[str, int]]] = {}
        self._counters = NodeCounters(pools, allocated)
        self._constraints = [[ConstraintState(each) for each in claim.constraints] for claim in claims]
        self._selectable: dict[tuple[int, int], bool] = {}
        self._every: dict[int, list[int]] = {}  # by request: the devices of one that asks for all
        self._choices: list[list[Choice]] = [[] for _ in claims]
        self._alternatives: dict[tuple[int, int], int] = {}

    def run(self) -> Found | None:
        self._check()
        try:
            found = self._request(0, 0)
        except _TooManyDevices:
            found = False
        if not found:
            if any(pool.invalid for pool in self._pools):
                raise NotOnNode("invalid resource pools were encountered")
            return None
        alternatives = tuple(
            tuple(self._alternatives.get((c, r), 0) for r in range(len(claim.requests)))
            for c, claim in enumerate(self._claims)
        )
        return Found(tuple(map(tuple, self._choices)), alternatives)

    # --- before the search -----------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Raises ClaimError if a claim can never be allocated; finds the devices of requests for all."""
        choices = 0
        for claim in self._claims:
            before = 0
            for alternatives in claim.requests:
                fewest = min(self._number(claim, each) for each in alternatives)
                name = alternatives[0].parent or alternatives[0].name
                problem = exceeds_results(claim.key, name, fewest, before)
                if problem:
                    raise ClaimError(problem)
                before += fewest
            choices += before + len(claim.requests)
        if choices > MAX_CHOICES:
            raise ClaimError(f"the claims of the pod ask for {choices} requests and devices, more than {MAX_CHOICES}")

    def _number(self, claim: CompiledClaim, request: CompiledRequest) -> int:
        return len(self._all_devices(claim, request)) if request.every else request.count

    def _all_devices(self, claim: CompiledClaim, request: CompiledRequest) -> list[int]:
        known = self._every.get(id(request))
        if known is None:
            known = self._every[id(request)] = self._find_all(claim, request)
        return known

    def _find_all(self, claim: CompiledClaim, request: CompiledRequest) -> list[int]:
        place = f"claim {claim.key}, request {request.name}"
        found: list[int] = []
        position = 0
        for number, pool in enumerate(self._pools):
            if not pool.usable:
                why = "being updated" if pool.incomplete else "invalid"
                raise ClaimError(f"{place}: asks for all devices, but resource pool {pool} is currently {why}")
            while position < len(self._candidates) and self._candidates[position].pool == number:
                candidate = self._candidates[position]
                if self._is_selectable(request, position) and self._has_capacity(claim, request, candidate, empty=True):
                    found.append(position)
                position += 1
        return found

    # --- the search ------------------------------------------------------------------------------------------------

    def _request(self, c: int, r: int) -> bool:
        """Allocates all requests from this one on, those of later claims included."""
        if c == len(self._claims):
            return True
        if r == len(self._claims[c].requests):
            try:
                return self._request(c + 1, 0)
            except _TooManyDevices:
                return False  # an earlier claim may leave an alternative that needs fewer
        alternatives = self._claims[c].requests[r]
        if not alternatives[0].parent:
            return self._device(c, r, alternatives[0], 0, 0)
        too_many = True
        for i, request in enumerate(alternatives):
            try:
                found = self._device(c, r, request, 0, 0)
            except _TooManyDevices:
                continue
            too_many = False
            if found:
                self._alternatives[c, r] = i
                return True
        if too_many:
            raise _TooManyDevices
        return False

    def _device(self, c: int, r: int, request: CompiledRequest, taken: int, start: int) -> bool:
        """Allocates the devices of a request beyond the first `taken`, from the candidate `start` on."""
        claim = self._claims[c]
        number = self._number(claim, request)
        if request.every and not number:
            return False
        if taken >= number:
            return self._request(c, r + 1)
        if number - taken > MAX_RESULTS - len(self._choices[c]):
            raise _TooManyDevices
        if request.every:
            # All of them are needed, in any order: one that cannot be had ends it.
            position = self._all_devices(claim, request)[taken]
            return self._take(c, request, position, must=True) and self._go_on(c, r, request, taken, position)
        failed: set[object] = set()
        for position in range(start, len(self._candidates)):
            candidate = self._candidates[position]
            self._count()
            if candidate.shape in failed or self._in_use(candidate.id, c, request):
                continue
            if not self._is_selectable(request, position) or not self._has_capacity(claim, request, candidate):
                continue
            if self._take(c, request, position) and self._go_on(c, r, request, taken, position):
                return True
            if not request.admin and not candidate.device.traits.shared:  # others may be taken more than once
                failed.add(candidate.shape)
        return False

    def _go_on(self, c: int, r: int, request: CompiledRequest, taken: int, position: int) -> bool:
        """Allocates what follows, and gives the device back if that fails."""
        found = False
        try:
            found = self._device(c, r, request, taken + 1, position + 1)
        finally:
            if not found:
                self._give_back(c, request, position)
        return found

    def _count(self) -> None:
        self._work.spend(1)
        if self._work.ended:
            if self._work.cut:
                raise SearchCut
            raise ClaimError("allocating devices takes too many steps: the claims have too many combinations")

    def _in_use(self, device: DeviceId, c: int, request: CompiledRequest) -> bool:
        by = self._taken.get(device)
        if request.admin:
            return by is not None and c in by
        return bool(by) or self._allocated.is_whole(device)

    def _is_selectable(self, request: CompiledRequest, position: int) -> bool:
        known = self._selectable.get((id(request), position))
        if known is None:
            known = self._selectable[id(request), position] = self._select(request, position)
        return known

    def _select(self, request: CompiledRequest, position: int) -> bool:
        candidate = self._candidates[position]
        name = "/".join(candidate.id)
        for each in request.selectors:
            if each.selector.problem:
                raise ClaimError(f"{each.subject}: CEL compile error: {each.selector.problem}")
            answer = self._answers.matches(each.selector, candidate.device, candidate.id[0])
            self._count()
            if isinstance(answer, str):
                raise ClaimError(f"{each.subject} on device {name}: CEL runtime error: {answer}")
            if not answer:
                return False
        if candidate.slice.selection is not None:
            return True
        return candidate.device.traits.selection.matches(*self._node)

    def _has_capacity(
        self, claim: CompiledClaim, request: CompiledRequest, candidate: Candidate, empty: bool = False
    ) -> bool:
        """Whether the device has the capacity for the request; `empty`: if no share of it were taken."""
        traits, capacities = candidate.device.traits, candidate.device.traits.capacity
        if traits.plain and not traits.shared and request.request.capacity is None:
            return True
        try:
            taken = () if empty else (self._allocated.consumed(candidate.id), *self._shares.get(candidate.id, ()))
            return fits(request.request.capacity, capacities, *taken)
        except ClaimError as error:
            place = f"claim {claim.key}, request {request.name}"
            raise ClaimError(f"{place}: checking capacity for device {'/'.join(candidate.id)}: {error}") from None

    # --- one device ------------------------------------------------------------------------------------------------

    def _take(self, c: int, request: CompiledRequest, position: int, must: bool = False) -> bool:
        """Takes a device on trial, unless it is in use, lacks counters, is tainted or breaks a constraint."""
        candidate, claim = self._candidates[position], self._claims[c]
        traits, id = candidate.device.traits, candidate.id
        self._work.spend(_TAKE + len(self._constraints[c]))
        if self._in_use(id, c, request) and not (request.admin and traits.shared):
            return False
        counted = bool(traits.consumes) and not (traits.shared and self._is_shared(id))
        if counted and not self._counters[candidate.pool].take(candidate):
            return False
        if not tolerated(traits.taints, request.request.tolerations):
            self._undo(c, request, candidate, counted, 0)
            return False
        for added, each in enumerate(self._constraints[c]):
            if not each.add(request, candidate.device):
                self._undo(c, request, candidate, counted, added)
                if must:
                    place = f"claim {claim.key}, request {request.name}"
                    unmet = "because a claim constraint would not be satisfied"
                    raise ClaimError(f"{place}: cannot add device {'/'.join(id)} {unmet}")
                return False
        if must and not self._has_capacity(claim, request, candidate):
            self._undo(c, request, candidate, counted, len(self._constraints[c]))
            return False
        consumed = consumed_capacity(request.request.capacity, traits.capacity) if traits.shared else None
        if consumed is None:
            self._taken.setdefault(id, []).append(c)
        else:
            self._shares.setdefault(id, []).append({name: amount.nano for name, amount in consumed.items()})
        self._choices[c].append(Choice(request, position, consumed))
        return True

    def _give_back(self, c: int, request: CompiledRequest, position: int) -> None:
        """Undoes `_take`: of the choices of a claim, the newest."""
        candidate = self._candidates[position]
        choice = self._choices[c].pop()
        held = self._taken if choice.consumed is None else self._shares
        held[candidate.id].pop()
        if not held[candidate.id]:
            del held[candidate.id]
        traits = candidate.device.traits
        counted = bool(traits.consumes) and not (traits.shared and self._is_shared(candidate.id))
        self._undo(c, request, candidate, counted, len(self._constraints[c]))

    def _undo(self, c: int, request: CompiledRequest, candidate: Candidate, counted: bool, added: int) -> None:
        for each in reversed(self._constraints[c][:added]):
            each.remove(request)
        if counted:
            self._counters[candidate.pool].give_back(candidate)

    def _is_shared(self, device: DeviceId) -> bool:
        return self._allocated.is_shared(device) or device in self._shares
