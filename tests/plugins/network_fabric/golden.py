"""The golden vectors of the rules about fabrics and zones: what the first KubeNexus, written in Go, answers, and ours.

Each row is reproduced, or a deliberate change with the id of the bug that it mends. `make docs` writes the table to
docs/fabric-golden.md (`golden_page`).
"""

from collections.abc import Mapping
from functools import partial

from kubenexus.api.core import Node
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.testing.builders import a_pod
from kubenexus.testing.harness import a_ledger
from tests.golden_vectors import Vector
from tests.plugins.network_fabric.fabric_cluster import PLUGINS, REFUSED, place, score, worker
from tests.plugins.topology_scoring.spread_cluster import own_pod, points
from tests.plugins.topology_scoring.spread_cluster import place as spread_place

MEMBER = place("m", fabric="infiniband", clique="c0", id="f1", rack="A", zone="a")


def beside_a_member(**said: str) -> str:
    """The score of a node for a training gang with a member on `MEMBER`."""
    return str(score(worker(of="g"), place("n", said), MEMBER))


def alone(fabric: str, kind: str = "training", gpu: int = 1, notes: Mapping[str, str] | None = None) -> str:
    labels = {"fabric": fabric} if fabric else {}
    return str(score(worker(kind=kind, gpu=gpu, notes=notes), place("n", labels)))


def filtered(candidate: Node, *, gang: bool = True, member: Node = MEMBER) -> str:
    """Whether a pod of a gang that needs one clique, with a member on another node, may use a node."""
    ledger, pod = a_ledger([candidate, member]), worker(of="g" if gang else "", gpu=8)
    level = TopologyRequest("clique", "", True) if gang else TopologyRequest()
    nodes, key = ((member.metadata.name,), "default/gang/g") if gang else ((), "default/w")
    ledger.upsert_pod(a_pod("running", gpu=8, node=member.metadata.name))
    decision = Planner(PLUGINS).decide(Job(key, (pod,), 1, level, nodes), ledger.snapshot(), 0.0)
    return "passes" if [each.node for each in decision.placements] == [candidate.metadata.name] else REFUSED


MEMBER_VECTORS: tuple[Vector, ...] = (
    Vector(
        "the same in all: clique, fabric, rack and zone",
        partial(beside_a_member, fabric="infiniband", clique="c0", id="f1", rack="A", zone="a"),
        "100",
        "95",
        "NET-4",
    ),
    Vector(
        "another clique, the same fabric",
        partial(beside_a_member, fabric="infiniband", clique="c1", id="f1", rack="A", zone="a"),
        "100",
        "82",
        "NET-4",
    ),
    Vector(
        "roce, another fabric, the same rack",
        partial(beside_a_member, fabric="roce", id="f2", rack="A", zone="a"),
        "40",
        "45",
        "NET-4",
    ),
    Vector(
        "roce, another rack, the same zone",
        partial(beside_a_member, fabric="roce", id="f2", rack="B", zone="a"),
        "0",
        "32",
        "NET-4",
    ),
    Vector(
        "ethernet, another zone",
        partial(beside_a_member, fabric="ethernet", id="f3", rack="C", zone="b"),
        "0",
        "10",
        "NET-4",
    ),
    Vector(
        "ethernet, no label besides",
        partial(beside_a_member, fabric="ethernet"),
        "20",
        "10",
        "NET-8",
    ),
)
ALONE_VECTORS: tuple[Vector, ...] = tuple(
    Vector(
        f"{kind}, one GPU, {fabric or 'unknown'}",
        partial(alone, fabric, kind),
        before,
        ours,
        "NET-4" * (before != ours),
    )
    for kind, rows in {
        "training": {
            "nvswitch": ("100", "75"),
            "nvlink": ("90", "70"),
            "infiniband": ("75", "70"),
            "roce": ("60", "45"),
            "ethernet": ("40", "35"),
            "": ("50", "50"),
        },
        "inference": {"nvswitch": ("100", "72"), "infiniband": ("75", "60"), "ethernet": ("40", "50")},
    }.items()
    for fabric, (before, ours) in rows.items()
)
FILTER_VECTORS: tuple[Vector, ...] = (
    Vector("the gang's clique", lambda: filtered(place("n", clique="c0")), "passes", "passes"),
    Vector("another clique", lambda: filtered(place("n", clique="c1")), REFUSED, REFUSED),
    Vector("no clique", lambda: filtered(place("n")), REFUSED, REFUSED),
    Vector("another clique, no gang", lambda: filtered(place("n", clique="c1"), gang=False), "passes", "passes"),
    Vector(
        "`min-fabric-tier: infiniband`, a pod alone, ethernet",
        lambda: alone("ethernet", notes={"min-fabric-tier": "infiniband"}),
        "40",
        REFUSED,
        "NET-3",
    ),
    Vector(
        "`min-fabric-tier: infiniband`, a pod alone, nvlink",
        lambda: alone("nvlink", notes={"min-fabric-tier": "infiniband"}),
        "90",
        "70",
        "NET-4",
    ),
)

# --- zones ------------------------------------------------------------------------------------------------------------


def zoned(sizes: Mapping[str, int], running: str, work: str, zone: str) -> str:
    """The score of a node in a zone, of a cluster with so many nodes in each, where own pods run in these zones."""
    nodes = [spread_place(f"{name}{i}", zone=name) for name, number in sizes.items() for i in range(number)]
    pods = [own_pod(f"p{i}", f"{name}0") for i, name in enumerate(running)]
    if not zone:
        nodes.append(spread_place("bare0"))
    return str(points(own_pod(work=work), a_ledger(nodes, pods))[f"{zone or 'bare'}0"])


UNEVEN = {"a": 3, "b": 1}
ZONE_VECTORS: tuple[Vector, ...] = (
    Vector("batch", lambda: zoned(UNEVEN, "aa", "batch", "a"), "50", "50"),
    Vector("training", lambda: zoned(UNEVEN, "aa", "training", "b"), "50", "50"),
    Vector("a node without a zone", lambda: zoned(UNEVEN, "aa", "service", ""), "50", "50"),
    Vector("3 of 4 nodes are in the zone, no own pod", lambda: zoned(UNEVEN, "", "service", "a"), "25", "50", "TS-1"),
    Vector("1 of 4 nodes is in the zone, no own pod", lambda: zoned(UNEVEN, "", "service", "b"), "75", "50", "TS-1"),
    Vector("3 of 4 nodes, both own pods elsewhere", lambda: zoned(UNEVEN, "bb", "service", "a"), "25", "100", "TS-1"),
    Vector("1 of 4 nodes, both own pods here", lambda: zoned(UNEVEN, "bb", "service", "b"), "75", "0", "TS-1"),
    Vector("1 of 4 nodes, an own pod in each zone", lambda: zoned(UNEVEN, "ab", "inference", "b"), "75", "50", "TS-1"),
    Vector("the only zone", lambda: zoned({"a": 2}, "a", "service", "a"), "0", "50", "TS-1"),
)
SECTIONS: dict[str, tuple[Vector, ...]] = {
    "NetworkFabricScore: a member of the job is on InfiniBand": MEMBER_VECTORS,
    "NetworkFabricScore: no member has a node": ALONE_VECTORS,
    "NetworkFabricScore: nodes that are refused": FILTER_VECTORS,
    "TopologyScoring: zones": ZONE_VECTORS,
}
