"""What a pod class asks of NUMA nodes, with what is known of it for each state of a NUMA node."""

from typing import Final

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
from kubenexus.state.numa.zone_states import ZoneStates

_RULES: Final = (NAME, "rules")
_POLICIES: Final = frozenset({SINGLE, RESTRICTED, ISOLATED})


class ContainerRules:
    """One container that wants something. `alone` is a pod that has only this one. `sufficient` are the bits with which
    a single NUMA node has the container."""

    __slots__ = ("alone", "bits", "decided", "demand", "room", "sufficient")

    def __init__(self, demand: ContainerDemand, alone: PodDemand) -> None:
        self.demand, self.alone = demand, alone
        rule = ContainerRule(demand)
        self.decided = rule.decided
        self.sufficient = rule.decided | FITS
        self.bits = StateMemo(rule)
        self.room = StateMemo(ContainerRoom(demand))


class ClassRules:
    """A class. `simple`: it has one container, so that what is judged of the container holds for the pod. `quick`: the
    NUMA node with the most points may decide about a row (`best`)."""

    __slots__ = (
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
        self.score = StateMemo(ScoreRule(request, wanted))
        self.quick = self.scored and request.policy not in (RESTRICTED, ISOLATED)
        self.best = BestMemo(self._quick_number)

    def _quick_number(self, states: ZoneStates, code: int) -> int:
        """Returns twice the points of a NUMA node, and one more if it has all that each container wants by itself. Then
        it decides about the row: no other one has to be looked at. 0 if it does not fit the pod as a whole."""
        one = [code]
        points = self.score.row(states, one)[0]
        if points < 0:
            return 0
        for each in self.containers:
            if each.bits.row(states, one)[0] & each.sufficient != each.sufficient:
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
