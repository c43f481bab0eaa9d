"""What a pod class asks of NUMA nodes, with what is known of it for each state of a NUMA node."""

from typing import Final

from kubenexus.api.numa.pod_demand import ContainerDemand, PodDemand
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.numa.alignment import ContainerRule
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
from kubenexus.plugins.numa.state_memo import StateMemo

_POLICIES: Final = frozenset({SINGLE, RESTRICTED, ISOLATED})


class ContainerRules:
    """One container that wants something. `alone` is a pod that has only this one."""

    __slots__ = ("alone", "bits", "decided", "demand", "room")

    def __init__(self, demand: ContainerDemand, alone: PodDemand) -> None:
        self.demand, self.alone = demand, alone
        rule = ContainerRule(demand)
        self.decided = rule.decided
        self.bits = StateMemo(rule)
        self.room = StateMemo(ContainerRoom(demand))


class ClassRules:
    """A class. `simple`: it has one container, so that what is judged of the container holds for the pod."""

    __slots__ = (
        "containers",
        "demand",
        "own",
        "policy",
        "policy_room",
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


def rules_of(pod: PodClass) -> ClassRules:
    """Returns the rules of a class, made at the first call."""
    return pod.cached((NAME, "rules"), lambda: ClassRules(request_of(pod), demand_of(pod), wanted_by(pod)))


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
