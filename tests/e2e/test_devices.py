"""GPUs on a real API server: eight nodes that publish their cards in three ways, judged from the API objects alone."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from kubenexus.testing.controlplane import ClusterClient, Object, Objects
from tests.e2e.scheduling import Start, a_node, a_pod, condition, make_nodes, node_of, placed, pods

GPU = "nvidia.com/gpu"
DEVICES, FRACTION = "scheduling.kubenexus.io/devices", "scheduling.kubenexus.io/gpu-fraction"
VRAM, NVLINK = "scheduling.kubenexus.io/vram-request", "gpu.kubenexus.io/prefer-nvlink"
H100, T4 = {f"gpu-node-0{i}" for i in range(1, 5)}, {"gpu-node-07", "gpu-node-08"}
A100 = {"gpu-node-05", "gpu-node-06"}
GFD = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.count": "8"}
MANUAL = {"gpu.kubenexus.io/model": "H100", "gpu.kubenexus.io/vram": "80Gi", "gpu.kubenexus.io/topology": "nvswitch"}
SHARED = {"gpu.kubenexus.io/shared": "true"}


def gpu_node(name: str, gpus: int, labels: dict[str, str]) -> Object:
    made = a_node(name, cpu="128", pods="250")
    made["metadata"]["labels"] |= labels
    for amounts in (made["status"]["capacity"], made["status"]["allocatable"]):
        amounts |= {GPU: str(gpus), "memory": "1Ti"}
    return made


def gpu_slice(node: str, product: str, memory: str, count: int, **attributes: Any) -> Object:
    def device(number: int) -> Object:
        known = {
            "productName": {"string": product},
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{node}-{number}"},
        }
        return {"name": f"gpu-{number}", "attributes": known | attributes, "capacity": {"memory": {"value": memory}}}

    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpu.nvidia.com"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [device(number) for number in range(count)],
        },
    }


@pytest.fixture
def hall(cluster: ClusterClient) -> ClusterClient:
    """Two nodes of H100 each from DRA, from GPU Feature Discovery and by hand, A100 and T4 from DRA and labels."""
    make_nodes(
        cluster,
        gpu_node("gpu-node-01", 8, {}),
        gpu_node("gpu-node-02", 8, GFD),
        gpu_node("gpu-node-03", 8, MANUAL),
        gpu_node("gpu-node-04", 8, GFD),
        gpu_node("gpu-node-05", 4, {}),
        gpu_node("gpu-node-06", 4, {"gpu.kubenexus.io/model": "A100-80GB", "gpu.kubenexus.io/topology": "pcie"}),
        gpu_node("gpu-node-07", 2, {}),
        gpu_node("gpu-node-08", 2, {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "15360"}),
    )
    joined = {"nvlinkDomain": {"int": 0}}
    cluster.create(gpu_slice("gpu-node-01", "NVIDIA H100 80GB HBM3", "81559Mi", 8, **joined))
    cluster.create(gpu_slice("gpu-node-05", "NVIDIA A100 80GB PCIe", "80Gi", 4))
    cluster.create(gpu_slice("gpu-node-07", "Tesla T4", "16Gi", 2))
    return cluster


def gpu_pod(name: str, gpus: int = 0, notes: dict[str, str] | None = None) -> Object:
    made = a_pod(name, metadata={"annotations": notes or {}})
    if gpus:
        made["spec"]["containers"][0]["resources"] = {"limits": {GPU: str(gpus)}}
    return made


def shares(objects: Objects) -> Counter[tuple[str, str]]:
    """What pods hold of each card, in thousandths."""
    total = Counter[tuple[str, str]]()
    for name, pod in objects.items():
        for entry in msgspec.json.decode(pod["metadata"].get("annotations", {}).get(DEVICES, "[]")):
            total[node_of(objects, name), entry["device"]] += entry["share"]
    return total


def there(count: int) -> Any:
    return lambda objects: len(placed(objects)) == count


def test_cards_have_the_memory_that_a_pod_asks_for(scheduler: Start, hall: ClusterClient, namespace: str) -> None:
    scheduler()
    for name, memory in (("large", "80Gi"), ("small", "15Gi"), ("never", "100Gi")):
        hall.create(gpu_pod(name, 1, {VRAM: memory}), namespace)
    said = hall.until(
        pods(namespace),
        lambda all: len(placed(all)) == 2 and bool(condition(all, "never")),
        "two are bound, one is told why",
    )
    assert node_of(said, "large") in H100 | A100
    assert node_of(said, "small") in T4
    assert "8 node(s) didn't have enough GPUs with the requested memory" in condition(said, "never")["message"]


def test_joined_cards_are_where_some_source_says_so(scheduler: Start, hall: ClusterClient, namespace: str) -> None:
    scheduler()
    for i in range(8):
        hall.create(gpu_pod(f"four-{i}", 4, {NVLINK: "required"}), namespace)
    found = hall.until(pods(namespace), there(8), "two on each node of H100")
    assert Counter(placed(found).values()) == dict.fromkeys(sorted(H100), 2)
    assert set(shares(found).values()) == {1000}
    hall.create(gpu_pod("fifth", 4, {NVLINK: "required"}), namespace)
    said = hall.until(pods(namespace), lambda all: bool(condition(all, "fifth")), "the ninth is told why")
    assert "didn't have 4 GPUs joined by NVLink" in condition(said, "fifth")["message"]


def test_small_pods_stay_off_whole_islands(scheduler: Start, hall: ClusterClient, namespace: str) -> None:
    scheduler()
    hall.create(gpu_pod("six", 6), namespace)
    found = hall.until(pods(namespace), there(1), "it breaks an island, since no other node is large enough")
    broken = node_of(found, "six")
    assert broken in H100
    hall.create(gpu_pod("two", 2), namespace)
    found = hall.until(pods(namespace), there(2), "it takes exactly what is left somewhere")
    assert node_of(found, "two") in {broken, *T4}
    for i in range(3):
        hall.create(gpu_pod(f"one-{i}", 1), namespace)
    found = hall.until(pods(namespace), there(5), "small ones")
    untouched = H100 - set(placed(found).values())
    assert len(untouched) == 3, placed(found)


def test_f17_halves_are_two_a_card_also_if_the_scheduler_is_killed_in_the_middle(
    scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, *(gpu_node(f"gpu-node-0{i}", 8, GFD | SHARED) for i in range(1, 5)))
    first = scheduler()
    for i in range(64):
        cluster.create(gpu_pod(f"half-{i}", 0, {FRACTION: "0.5"}), namespace)
        if i == 40:
            first.kill()
    scheduler()
    found = cluster.until(pods(namespace), there(64), "all halves are bound")
    assert len(shares(found)) == 32
    assert set(shares(found).values()) == {1000}
