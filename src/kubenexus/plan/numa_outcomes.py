"""What placed pods get of NUMA nodes, for metrics. Called once a decision is committed."""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.keys import gang
from kubenexus.api.keys.reading import read_key
from kubenexus.api.numa.machine import Machine, members
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plugins.numa.points import LEAST_FITTING
from kubenexus.plugins.numa.request import NAME, numa_request
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.numa.holdings import zones_of

SINGLE, SEVERAL, NO_REPORT = "single_numa", "cross_numa", "no_numa_info"
NEAR, FAR = "near", "far"
_NEAR: Final = 20  # the largest distance that is near: sockets of one machine have 20 or 21
PACKED, BALANCED = "packed", "balanced"


class NumaOutcome(NamedTuple):
    """One pod: its own policy, what it gets, the points of its node (None without a report, and for members of gangs),
    and how far apart its NUMA nodes are if it has several."""

    policy: str
    outcome: str
    score: int | None = None
    distance: str = ""


class GangShare(NamedTuple):
    """Members of a gang that share NUMA nodes as the gang wants, on NUMA nodes with this number."""

    policy: str
    numa: int
    members: int


def numa_outcomes(decision: Decision, job: Job, columns: NodeColumns) -> Iterator[NumaOutcome]:
    """Yields the outcome of each placed pod that asks something of NUMA nodes, if any node reports some."""
    if not columns.numa.any or not decision.placements:
        return
    pods = {pod.key: pod for pod in job.pods}
    for placement in decision.placements:
        pod = pods.get(placement.pod)
        request = None if pod is None else numa_request(pod)
        if pod is None or request is None:
            continue
        if columns.numa.of_row(columns.row_of.get(placement.node, -1)) is None:
            yield NumaOutcome(request.policy, NO_REPORT)
            continue
        score = next((int(each.raw) for each in placement.scores if each.plugin == NAME), None)
        zones, machine = _zones(pod, placement.node, columns)
        if zones and machine is not None:
            several = zones & (zones - 1) != 0
            distance = _distance(machine, zones) if several else ""
            yield NumaOutcome(request.policy, SEVERAL if several else SINGLE, score, distance)
        elif score is not None:
            yield NumaOutcome(request.policy, SINGLE if score >= LEAST_FITTING else SEVERAL, score)


def gang_shares(decision: Decision, job: Job, columns: NodeColumns) -> Iterator[GangShare]:
    """Yields how many members of a gang share NUMA nodes as the gang wants: `packed` with another member, `isolated`
    with none, `balanced` with at most one more than on any other NUMA node that the gang has."""
    if len(decision.placements) < 2 or not columns.numa.any:
        return
    meta = job.pods[0].metadata
    policy = read_key(gang.NUMA_SPREAD, meta.labels, meta.annotations).value
    nodes = {placement.pod: placement.node for placement in decision.placements}
    places = Counter[tuple[str, int]]()
    for pod in job.pods:
        if pod.key in nodes:
            zones, _ = _zones(pod, nodes[pod.key], columns)
            places.update((nodes[pod.key], zone) for zone in members(zones))
    least = min(places.values(), default=0)
    found = Counter[int]()
    for (_, zone), number in places.items():
        good = number > 1 if policy == PACKED else number <= least + 1 if policy == BALANCED else number == 1
        if good:
            found[zone] += number
    for zone, number in sorted(found.items()):
        yield GangShare(policy, zone, number)


def _zones(pod: Pod, node: str, columns: NodeColumns) -> tuple[int, Machine | None]:
    """Returns the NUMA nodes of a pod, 0 if they are not known, and the machine."""
    here = columns.numa.of_row(columns.row_of.get(node, -1))
    held = None if here is None else here.holdings.get(pod.metadata.uid or pod.key)
    if here is None or held is None:
        return 0, None
    return zones_of(here.reported.machine, held), here.reported.machine


def _distance(machine: Machine, zones: int) -> str:
    inside = members(zones)
    return NEAR if max(machine.distances[one][other] for one in inside for other in inside) <= _NEAR else FAR
