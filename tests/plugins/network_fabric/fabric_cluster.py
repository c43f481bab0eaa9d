"""Nodes with a place in the network, and the scores of NetworkFabricScore on them."""

from collections.abc import Iterable, Mapping

from kubenexus.api.core import Node, Pod
from kubenexus.api.keys import discovered, gang, network, workload
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import JobView
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.testing.builders import ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger

NAME = "NetworkFabricScore"
REFUSED = "refused"
PLUGINS = profile_plugins(shipped_profile())
KEYS = {
    "fabric": network.FABRIC_TYPE.key,
    "id": network.FABRIC_ID.key,
    "clique": discovered.CLIQUE.key,
    "tor": network.SWITCH.key,
    "rack": network.RACK.key,
    "zone": ZONE,
    "rate": network.BANDWIDTH.key,
}


def place(name: str, said: Mapping[str, str] | None = None, *, gpu: int = 8, **more: str) -> Node:
    """A node with these labels: `fabric`, `id`, `clique`, `tor`, `rack`, `zone`, `rate`, or a whole key."""
    labels = {KEYS.get(key, key): value for key, value in {**(said or {}), **more}.items()}
    return a_node(name, cpu=128, gpu=gpu, labels=labels)


def worker(
    name: str = "w", kind: str = "training", *, gpu: int = 1, notes: Mapping[str, str] | None = None, of: str = ""
) -> Pod:
    """A pod of this kind of work; of a gang of two, if that is named."""
    labels = {gang.NAME.key: of, gang.MIN_AVAILABLE.key: "2"} if of else {}
    return a_pod(
        name,
        gpu=gpu or None,
        labels=labels | {workload.TYPE.key: kind},
        annotations={f"{P}{k}": v for k, v in (notes or {}).items()},
    )


P = "scheduling.kubenexus.io/"


def scores(pod: Pod, nodes: Iterable[Node], members: Iterable[str] = ()) -> dict[str, int | str]:
    """The score of each node, or `REFUSED`, for a member of a job whose other members are on these nodes."""
    columns = a_ledger(nodes).nodes
    placed = tuple(columns.row_of[name] for name in members)
    table = ClassCache(PLUGINS).lookup(pod, columns, JobView(1 + len(placed), placed)).table
    (column,) = [score for score in table.scores if score.plugin.name == NAME]
    refusing = [each for each in table.filters if each.plugin.name == NAME and each.bits is not None]
    return {
        name: REFUSED if any(each.at(row) for each in refusing) else column.at(row)
        for name, row in columns.row_of.items()
    }


def score(pod: Pod, node: Node, member: Node | None = None) -> int | str:
    """The score of one node, with a member of the job on another."""
    if member is None:
        return scores(pod, [node])[node.metadata.name]
    return scores(pod, [node, member], [member.metadata.name])[node.metadata.name]
