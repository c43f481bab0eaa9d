"""The cluster of the story: ordinary nodes, and GPUs of three kinds, in two zones."""

from collections.abc import Iterator

from kubenexus.api.core import Taint
from kubenexus.client.calls import Call
from kubenexus.sim.nodes import ZONE, Template

WEST, EAST = "us-east-1a", "us-east-1b"
RACK = "topology.kubenexus.io/rack"
PRODUCT = "nvidia.com/gpu.product"
CLIQUE = "nvidia.com/gpu.clique"
GPU = "nvidia.com/gpu"
GPU_NODES = 8
H100, A100, T4 = ("128", "1Ti", "8"), ("64", "512Gi", "4"), ("32", "128Gi", "2")


def nodes(ordinary: int, now: float) -> Iterator[Call]:
    """The calls that register all of them."""
    size = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    yield from Template(prefix="cpu-", capacity=size, zones=(WEST, EAST)).nodes(ordinary, now)
    for island in ("0", "1"):
        labels = {PRODUCT: "NVIDIA-H100-80GB-HBM3", CLIQUE: f"clique-{island}", ZONE: WEST, RACK: "rack-a"}
        yield from _gpus(f"h100-{island}-", H100, labels).nodes(2, now)
    labels = {PRODUCT: "NVIDIA-A100-SXM4-80GB", ZONE: WEST, RACK: "rack-b"}
    yield from _gpus("a100-", A100, labels).nodes(2, now)
    yield from _gpus("t4-", T4, {PRODUCT: "Tesla-T4", ZONE: EAST, RACK: "rack-c"}).nodes(2, now)


def _gpus(prefix: str, size: tuple[str, str, str], labels: dict[str, str]) -> Template:
    """Tainted, as is the custom: only who asks for GPUs comes here."""
    cpu, memory, gpus = size
    capacity = {"cpu": cpu, "memory": memory, "pods": "110", GPU: gpus}
    return Template(prefix=prefix, capacity=capacity, labels=labels, taints=[Taint(key=GPU, effect="NoSchedule")])
