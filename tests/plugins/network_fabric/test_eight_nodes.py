"""The expectations about fabrics and zones on the fixture of eight nodes, with the shipped profile."""

import pytest

from kubenexus.api.core import Node
from kubenexus.api.gangs.topology_request import topology_request_of
from kubenexus.api.keys import discovered
from kubenexus.framework.job import Job
from kubenexus.plugins import shipped_profile
from kubenexus.testing.builders import ZONE, a_node, a_pod
from kubenexus.testing.harness import run
from tests.plugins.network_fabric.fabric_cluster import KEYS, worker


def eight_nodes() -> list[Node]:
    """Two cliques of two nodes with an NVSwitch, two nodes on InfiniBand, two on Ethernet in another zone."""
    shapes = [
        *[("128", "1Ti", 8, "nvswitch", "fabric-01", "rack-A", "us-east-1a", f"clique-{i // 2}") for i in range(4)],
        *[("64", "512Gi", 4, "infiniband", "fabric-02", "rack-B", "us-east-1a", "")] * 2,
        *[("32", "128Gi", 2, "ethernet", "fabric-03", "rack-C", "us-east-1b", "")] * 2,
    ]
    found = []
    for i, (cpu, memory, gpu, fabric, identity, rack, zone, clique) in enumerate(shapes):
        labels = {KEYS["fabric"]: fabric, KEYS["id"]: identity, KEYS["rack"]: rack, ZONE: zone}
        labels |= {discovered.CLIQUE.key: clique} if clique else {}
        found.append(a_node(f"gpu-node-{i + 1:02}", cpu=cpu, memory=memory, gpu=gpu, labels=labels))
    return found


ZONES = {node.metadata.name: node.metadata.labels[ZONE] for node in eight_nodes()}
CLIQUES = {node.metadata.name: node.metadata.labels.get(discovered.CLIQUE.key, "") for node in eight_nodes()}


def test_network_fabric_preference() -> None:
    """A training pod with one GPU does not go to Ethernet."""
    done = run(eight_nodes(), [worker("train")], profile=shipped_profile())
    assert done.placements["train"] not in ("gpu-node-07", "gpu-node-08")


def test_topology_spread_across_azs() -> None:
    pods = [a_pod(f"web-{i}", cpu=2, memory="4Gi", labels={"app": "web"}) for i in range(4)]
    done = run(eight_nodes(), pods, profile=shipped_profile())
    assert {ZONES[node] for node in done.placements.values()} == {"us-east-1a", "us-east-1b"}


def test_service_pods_spread() -> None:
    pods = [a_pod(f"web-{i}", cpu=2, memory="4Gi", labels={"app": "web"}) for i in range(3)]
    assert len(set(run(eight_nodes(), pods, profile=shipped_profile()).placements.values())) >= 2


@pytest.mark.parametrize("key", ["require-clique", "co-locate"])
def test_gang_clique_co_location(key: str) -> None:
    notes = {key: "true" if key == "require-clique" else "strict"}
    pods = tuple(worker(f"w{i}", gpu=2, of="g", notes=notes) for i in range(4))
    job = Job("default/gang/g", pods, 4, topology_request_of(pods[0]))
    done = run(eight_nodes(), [job], profile=shipped_profile())
    assert len(done.placements) == 4
    (clique,) = {CLIQUES[node] for node in done.placements.values()}
    assert clique
