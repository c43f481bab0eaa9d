"""The nodes of the demo: ordinary ones, and GPUs of three models behind three fabrics, in two zones."""

from collections.abc import Iterator

from kubenexus.api.core import Taint
from kubenexus.client.calls import Call
from kubenexus.sim.kubelets.node_calls import ZONE, NodeTemplate

WEST, EAST = "us-east-1a", "us-east-1b"
GPU = "nvidia.com/gpu"
GPU_NODES = 8
H100, A100, T4 = ("128", "1Ti", "8"), ("64", "512Gi", "4"), ("32", "128Gi", "2")


def nodes(ordinary: int, now: float) -> Iterator[Call]:
    """Yields the calls that register all nodes."""
    size = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    yield from NodeTemplate(prefix="cpu-", capacity=size, zones=(WEST, EAST)).nodes(ordinary, now)
    for island in ("0", "1"):
        labels = _labels("NVIDIA-H100-80GB-HBM3", "nvswitch", "fabric-01", "rack-A", "gold")
        cliques = {**labels, "nvidia.com/gpu.clique": f"clique-{island}", ZONE: WEST, **_numa(2)}
        yield from _gpus(f"h100-{island}-", H100, cliques).nodes(2, now)
    labels = _labels("NVIDIA-A100-SXM4-80GB", "infiniband", "fabric-02", "rack-B", "silver")
    yield from _gpus("a100-", A100, {**labels, ZONE: WEST, **_numa(2)}).nodes(2, now)
    labels = _labels("Tesla-T4", "ethernet", "fabric-03", "rack-C", "bronze")
    yield from _gpus("t4-", T4, {**labels, ZONE: EAST, **_numa(1)}).nodes(2, now)


def _labels(product: str, fabric: str, network: str, rack: str, tier: str) -> dict[str, str]:
    return {
        "nvidia.com/gpu.product": product,
        "network.kubenexus.io/fabric-type": fabric,
        "network.kubenexus.io/fabric-id": network,
        "network.kubenexus.io/rack-id": rack,
        "hardware.kubenexus.io/tier": tier,
    }


def _numa(count: int) -> dict[str, str]:
    return {"numa.kubenexus.io/node-count": str(count)}


def _gpus(prefix: str, size: tuple[str, str, str], labels: dict[str, str]) -> NodeTemplate:
    """GPU nodes are tainted, as is usual, so that only pods with GPUs run there."""
    cpu, memory, gpus = size
    capacity = {"cpu": cpu, "memory": memory, "pods": "110", GPU: gpus}
    return NodeTemplate(prefix=prefix, capacity=capacity, labels=labels, taints=[Taint(key=GPU, effect="NoSchedule")])
