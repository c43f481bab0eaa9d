"""What a pod class asks of NUMA nodes, with what is known of it for each state of a NUMA node."""

from typing import Any, Final

import numpy as np

from kubenexus.api.numa.pod_demand import ContainerDemand, PodDemand
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.numa.alignment import FITS, ContainerRule
from kubenexus.plugins.numa.own_policy import PolicyRule
from kubenexus.plugins.numa.request import (
    ISOLATED,
    NAME,
    NONE,
    RESTRICTED,
    SINGLE,
    NumaRequest,
    Wanted,
    demand_of,
    request_of,
    wanted_by,
)
from kubenexus.plugins.numa.room import ContainerRoom, PolicyRoom
from kubenexus.plugins.numa.score_rule import ScoreRule
from kubenexus.plugins.numa.state_memo import BestMemo, StateMemo
from kubenexus.state.numa.zone_states import ZoneState, ZoneStates

_RULES: Final = (NAME, "rules")
_POLICIES: Final = frozenset({SINGLE, RESTRICTED, ISOLATED})


class ContainerRules:
    """One container that wants something. `alone` is a pod that has only this one. `sufficient` are the bits with which
    a single NUMA node has the container."""

    __slots__ = ("alone", "bits", "decided", "demand", "room", "rule", "sufficient")

    def __init__(self, demand: ContainerDemand, alone: PodDemand) -> None:
        self.demand, self.alone = demand, alone
        self.rule = ContainerRule(demand)
        self.decided = self.rule.decided
        self.sufficient = self.decided | FITS
        self.bits = StateMemo(self.rule)
        self.room = StateMemo(ContainerRoom(demand))


class ClassRules:
    """A class. `simple`: it has one container, so that what is judged of the container holds for the pod. `quick`: the
    NUMA node with the most points may decide about a row (`best`)."""

    __slots__ = (
        "_score_rule",
        "best",
        "containers",
        "demand",
        "own",
        "policy",
        "policy_room",
        "quick",
        "request",
        "score",
        "scored",
        "simple",
        "wanted",
    )

    def __init__(self, request: NumaRequest, demand: PodDemand | None, wanted: Wanted) -> None:
        self.request, self.demand, self.wanted = request, demand, wanted
        self.own = request.policy in _POLICIES
        self.scored = request.pinned or request.policy != NONE
        self.containers = [ContainerRules(each.containers[0], each) for each in _alone(demand)]
        self.simple = demand is None or (len(demand.containers) == 1 and not demand.containers[0].init)
        self.policy = StateMemo(PolicyRule(request, wanted))
        self.policy_room = StateMemo(PolicyRoom(request, wanted))
        self._score_rule = ScoreRule(request, wanted)
        self.score = StateMemo(self._score_rule)
        self.quick = self.scored and request.policy not in (RESTRICTED, ISOLATED)
        self.best = BestMemo(self._quick_numbers, self._quick_number)

    def _quick_numbers(self, states: ZoneStates) -> Any:
        """Returns twice the points of each NUMA node, and one more if it has all that each container wants by itself:
        then it decides about its row, and no other one has to be looked at. 0 if it does not fit the pod as a whole."""
        points, known = self.score.known(states)
        sufficient = points >= 0
        for each in self.containers:
            bits, of_each = each.bits.known(states)
            sufficient &= (bits & each.sufficient) == each.sufficient
            known &= of_each
        return np.where(known, 2 * np.maximum(points, 0) + sufficient, -1)

    def _quick_number(self, state: ZoneState, states: ZoneStates) -> int:
        """The same for one state."""
        points = self._score_rule.one(state, states)
        if points < 0:
            return 0
        for each in self.containers:
            if each.rule.one(state, states) & each.sufficient != each.sufficient:
                return 2 * points
        return 2 * points + 1


def rules_of(pod: PodClass) -> ClassRules:
    """Returns the rules of a class, made at the first call."""
    return pod.cached(_RULES, lambda: ClassRules(request_of(pod), demand_of(pod), wanted_by(pod)))


def _alone(demand: PodDemand | None) -> list[PodDemand]:
    """Returns a pod for each different container that wants something, without names and kinds: each must be admitted
    by itself. The pod itself, if it has only one."""
    if demand is None:
        return []
    plain = [
        ContainerDemand(cpus=each.cpus, memory=each.memory, devices=each.devices)
        for each in demand.containers
        if each.cpus or each.memory is None or each.memory or each.devices
    ]
    asking = list(dict.fromkeys(plain))
    if len(asking) == len(demand.containers) == 1 and not demand.containers[0].init:
        return [demand]
    return [PodDemand((each,), each.cpus, each.memory, each.devices) for each in asking]
