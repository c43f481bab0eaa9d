"""GPU time and cost by tenant and hardware tier, in virtual time."""

from typing import Any

import pytest

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device import Device, DeviceKind, NodeDevices
from kubenexus.api.devices.device_share import DeviceShare, devices_annotation
from kubenexus.api.devices.hardware_tier import HardwareTier
from kubenexus.api.keys import gpu
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import Namespace
from kubenexus.app.report.tenant_usage import TenantUsage
from kubenexus.base.clock import VirtualClock
from kubenexus.observe.metrics import Metrics
from kubenexus.observe.tenant_metrics import MAX_TENANTS, Usage, UsageKey
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import GPU, a_node, a_pod

PREMIUM, STANDARD, ECONOMY, UNKNOWN = (
    HardwareTier.PREMIUM,
    HardwareTier.STANDARD,
    HardwareTier.ECONOMY,
    HardwareTier.UNKNOWN,
)
HOUR = 3600


class Cluster:
    """A ledger whose changes are reported to `usage`, as the event handlers do, and which settles them at once."""

    def __init__(self, *nodes: Node, counting: bool = True) -> None:
        self.clock, self.ledger = VirtualClock(1_000_000.0), Ledger()
        self.usage = TenantUsage(self.ledger, self.clock)
        for node in nodes:
            self.node(node)
        if counting:
            self.usage.start()
            self.usage.drain()

    def node(self, node: Node, *, read: bool = True) -> None:
        self.ledger.upsert_node(node)
        if read:
            self.ledger.read_devices()
        self.usage.on_node(node.metadata.name)
        self.settle()

    def namespace(self, namespace: str, **labels: str) -> None:
        named = {f"tenant.kubenexus.io/{key}": value for key, value in labels.items()}
        self.ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name=namespace, labels=named)))
        self.usage.on_namespace(namespace)
        self.settle()

    def settle(self) -> None:
        self.usage.settle()
        while self.usage.busy:
            self.usage.settle()

    def pod(self, pod: Pod) -> None:
        self.ledger.upsert_pod(pod)
        self.usage.on_pod(pod.key, pod)

    def end(self, key: str) -> None:
        self.ledger.remove_pod(key)
        self.usage.on_pod(key, None)

    def used(self) -> dict[tuple[str, str, str], float]:
        """GPU hours since the last reading, by tenant, tier and hardware."""
        return {_labels(each): each.gpu_seconds / HOUR for each in self.usage.drain() if each.gpu_seconds}


def _labels(usage: Usage) -> tuple[str, str, str]:
    return usage.key.tenant, usage.key.tier, usage.key.hardware.label


def h100(name: str = "n", labels: dict[str, str] | None = None) -> Node:
    return a_node(name, gpu=8, labels={"gpu.kubenexus.io/model": "H100"} | (labels or {}))


def bound(name: str = "p", gpus: int = 1, namespace: str = "ml", node: str = "n", **more: Any) -> Pod:
    return a_pod(name, namespace=namespace, requests={GPU: gpus} if gpus else {}, node=node, **more)


def test_gpu_hours_are_what_pods_held_while_they_ran() -> None:
    cluster = Cluster(h100())
    cluster.namespace("ml", tier="gold", name="research")
    cluster.pod(bound("a", 2))
    cluster.clock.advance(HOUR)
    cluster.pod(bound("b", 4))
    cluster.clock.advance(HOUR / 2)
    cluster.end("ml/a")
    cluster.clock.advance(HOUR / 2)
    assert cluster.used() == {("research", "gold", "premium"): 2 + 6 / 2 + 4 / 2}
    assert cluster.used() == {}


def test_a_pod_that_waits_or_is_assumed_is_not_counted() -> None:
    cluster = Cluster(h100())
    waits = bound("waits", node="")
    cluster.pod(waits)
    cluster.ledger.assume(waits, "n", cluster.clock.now())
    cluster.usage.on_pod(waits.key, waits)
    cluster.clock.advance(HOUR)
    assert cluster.used() == {}
    cluster.pod(bound("waits"))
    cluster.clock.advance(HOUR)
    assert cluster.used() == {("ml", "bronze", "premium"): 1}


def test_a_namespace_that_changes_its_tier_takes_what_runs_with_it() -> None:
    cluster = Cluster(h100())
    cluster.namespace("ml", tier="gold")
    for name in "abc":
        cluster.pod(bound(name))
    cluster.clock.advance(HOUR)
    cluster.namespace("ml", tier="silver")
    cluster.clock.advance(HOUR)
    cluster.ledger.remove_namespace("ml")
    cluster.usage.on_namespace("ml")
    cluster.settle()
    cluster.clock.advance(HOUR)
    assert cluster.used() == {("ml", tier, "premium"): 3 for tier in ("gold", "silver", "bronze")}


def test_the_pods_of_a_namespace_or_a_node_move_in_portions() -> None:
    cluster = Cluster(h100())
    for number in range(10):
        cluster.pod(bound(f"p{number}", namespace="ml" if number < 9 else "web"))
    for kind in ("namespace", "node"):
        if kind == "namespace":
            for namespace in ("ml", "web"):
                labels = {"tenant.kubenexus.io/tier": "gold"}
                cluster.ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name=namespace, labels=labels)))
                cluster.usage.on_namespace(namespace)
        else:
            cluster.ledger.upsert_node(h100(labels={"hardware.kubenexus.io/tier": "economy"}))
            cluster.usage.on_node("n")
        moved = []
        while cluster.usage.busy:
            cluster.usage.settle(4)
            keys = [held.key for held in cluster.usage._pods.values()]
            moved.append(sum(key.tier == "gold" if kind == "namespace" else key.hardware is ECONOMY for key in keys))
        assert moved == [2, 4, 6, 8, 10, 10]
    assert {_labels(each): each.gpus for each in cluster.usage.drain()} == {
        ("ml", "gold", "economy"): 9,
        ("web", "gold", "economy"): 1,
        ("ml", "bronze", "premium"): 0,
        ("web", "bronze", "premium"): 0,
        ("ml", "gold", "premium"): 0,
        ("web", "gold", "premium"): 0,
    }


def test_a_tenant_that_changes_its_queue_in_each_turn_delays_no_other() -> None:
    cluster = Cluster(h100())
    for number in range(20):
        cluster.pod(bound(f"p{number}", namespace="flips"))
    cluster.pod(bound("p", namespace="web"))
    cluster.usage.on_namespace("flips")
    cluster.ledger.upsert_namespace(
        Namespace(metadata=ObjectMeta(name="web", labels={"tenant.kubenexus.io/tier": "gold"}))
    )
    cluster.usage.on_namespace("web")
    for _ in range(2):
        cluster.usage.settle(2)
        cluster.usage.on_namespace("flips")
    assert cluster.usage._pods["web/p"].key.tier == "gold"


def test_what_is_kept_of_a_pod_does_not_grow_with_its_annotations() -> None:
    cluster = Cluster(h100())
    for number in range(3):
        cluster.pod(bound(f"p{number}", annotations={"tenant.kubenexus.io/tier": f"{number}" + "x" * 1000}))
    fields = [held.fields for held in cluster.usage._pods.values()]
    assert fields == 3 * [("ml", None, None, None, False)]


def test_a_pod_that_lowers_its_own_tier_is_counted_there() -> None:
    cluster = Cluster(h100())
    cluster.namespace("ml", tier="gold")
    cluster.pod(bound("a"))
    cluster.pod(bound("b", labels={"tenant.kubenexus.io/tier": "bronze"}))
    cluster.clock.advance(HOUR)
    assert cluster.used() == {("ml", "gold", "premium"): 1, ("ml", "bronze", "premium"): 1}


def test_a_pod_that_is_relabelled_while_it_runs_moves_to_its_new_tier() -> None:
    cluster = Cluster(h100())
    cluster.namespace("ml", tier="gold")
    cluster.pod(bound("a", 2))
    cluster.clock.advance(HOUR)
    cluster.pod(bound("a", 2, labels={"tenant.kubenexus.io/tier": "silver"}))
    cluster.clock.advance(HOUR)
    assert cluster.used() == {("ml", "gold", "premium"): 2, ("ml", "silver", "premium"): 2}


def test_a_pod_cannot_put_its_use_on_another_tenant() -> None:
    cluster = Cluster(h100())
    cluster.pod(bound("a", annotations={"tenant.kubenexus.io/name": "victim"}))
    cluster.clock.advance(HOUR)
    assert cluster.used() == {("ml", "bronze", "premium"): 1}


def test_a_node_that_is_relabelled_takes_its_pods_with_it() -> None:
    cluster = Cluster(h100())
    cluster.pod(bound("a", 2))
    cluster.clock.advance(HOUR)
    cluster.node(h100(labels={"hardware.kubenexus.io/tier": "standard"}))
    cluster.clock.advance(HOUR)
    assert cluster.used() == {("ml", "bronze", "premium"): 2, ("ml", "bronze", "standard"): 2}


def test_pods_of_a_node_that_is_gone_count_as_before_until_they_are_gone() -> None:
    cluster = Cluster(h100())
    cluster.pod(bound("a"))
    cluster.ledger.remove_node("n")
    cluster.usage.on_node("n")
    cluster.clock.advance(HOUR)
    assert cluster.used() == {("ml", "bronze", "premium"): 1}
    cluster.end("ml/a")
    cluster.clock.advance(HOUR)
    assert cluster.used() == {}


def test_nothing_is_counted_before_this_process_schedules() -> None:
    cluster = Cluster(h100(), counting=False)
    cluster.pod(bound("a"))
    cluster.clock.advance(HOUR)
    assert cluster.usage.drain() == []
    cluster.usage.start()
    assert [each.gpus for each in cluster.usage.drain()] == [1]
    cluster.clock.advance(HOUR)
    assert cluster.used() == {("ml", "bronze", "premium"): 1}


def test_counting_begins_when_the_devices_are_read() -> None:
    cluster = Cluster(counting=False)
    cluster.node(h100(), read=False)
    cluster.pod(bound("a"))
    cluster.usage.start()
    assert cluster.usage.drain() == []
    cluster.ledger.read_devices()
    cluster.usage.drain()
    cluster.clock.advance(HOUR)
    assert cluster.used() == {("ml", "bronze", "premium"): 1}


@pytest.mark.parametrize(
    ("pod", "gpus"),
    [
        pytest.param(bound(gpus=4), 4, id="whole GPUs by number"),
        pytest.param(
            bound(
                gpus=1,
                annotations={
                    gpu.FRACTION.key: "0.5",
                    gpu.DEVICES.key: devices_annotation((DeviceShare("gpu-3", 500, 1),)),
                },
            ),
            0.5,
            id="a part of a GPU",
        ),
        pytest.param(
            bound(
                gpus=0,
                annotations={
                    gpu.FRACTION.key: "0.25",
                    gpu.DEVICES.key: devices_annotation((DeviceShare("gpu-3", 250),)),
                },
            ),
            0.25,
            id="a part without a number",
        ),
        pytest.param(
            bound(gpus=3, annotations={gpu.DEVICES.key: devices_annotation((DeviceShare("gpu-0"),))}),
            3,
            id="GPUs beyond those with names",
        ),
        pytest.param(bound(gpus=0), 0, id="no GPUs"),
        pytest.param(
            bound(gpus=0, annotations={gpu.DEVICES.key: devices_annotation((DeviceShare("gpu-3"),))}),
            0,
            id="an annotation that names cards the pod does not ask for",
        ),
    ],
)
def test_how_much_of_the_cards_a_pod_holds(pod: Pod, gpus: float) -> None:
    cluster = Cluster(h100(labels={"gpu.kubenexus.io/shared": "true"}))
    cluster.pod(pod)
    assert sum(each.gpus for each in cluster.usage.drain()) == gpus


def test_a_pod_with_whole_cards_cannot_write_that_it_holds_less() -> None:
    cluster = Cluster(h100())
    cluster.pod(bound(gpus=8))
    shares = tuple(DeviceShare(f"gpu-{number}", 1) for number in range(8))
    annotations = {gpu.FRACTION.key: "0.001", gpu.DEVICES.key: devices_annotation(shares)}
    cluster.pod(bound(gpus=8, annotations=annotations))
    assert [usage.gpus for usage in cluster.usage.drain()] == [8]


def test_replicas_of_a_time_sliced_card_are_parts_of_it() -> None:
    cluster = Cluster(a_node("n", gpu=8, labels={"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "4"}))
    cluster.pod(bound(gpus=2))
    assert [(each.key.hardware, each.gpus) for each in cluster.usage.drain()] == [(ECONOMY, 0.5)]


@pytest.mark.parametrize(
    ("profile", "model", "part"),
    [
        pytest.param("1g.10gb", "NVIDIA-A100-SXM4-80GB", 0.143, id="a seventh of the compute"),
        pytest.param("3g.40gb", "NVIDIA-A100-SXM4-80GB", 0.5, id="half of the memory"),
        pytest.param("7g.80gb", "NVIDIA-A100-SXM4-80GB", 1, id="the whole card"),
        pytest.param("1g.6gb", "NVIDIA-A30", 0.25, id="a quarter of a card with four slices"),
        pytest.param("2g.20gb", "", 0.286, id="by its compute where the card is not known"),
    ],
)
def test_a_mig_device_is_its_part_of_the_card(profile: str, model: str, part: float) -> None:
    resource = f"nvidia.com/mig-{profile}"
    cluster = Cluster(a_node("n", resources={resource: 1}))
    device = Device(name="mig-0", kind=DeviceKind.MIG, resource=resource, profile=profile, model=model)
    cluster.ledger.set_devices("n", NodeDevices((device,)))
    cluster.pod(a_pod("p", requests={resource: 1}, node="n"))
    assert [each.gpus for each in cluster.usage.drain()] == [part]


def test_the_cost_is_the_part_of_the_nodes_price_by_cards() -> None:
    cluster = Cluster(h100(labels={"hardware.kubenexus.io/cost-hour": "10.00"}), h100("free"))
    cluster.pod(bound("a", 2))
    cluster.clock.advance(HOUR)
    assert [each.cost for each in cluster.usage.drain()] == [pytest.approx(2.5)]
    cluster.end("ml/a")
    cluster.pod(bound("b", node="free"))
    cluster.clock.advance(HOUR)
    assert {each.cost for each in cluster.usage.drain()} == {None}


def test_a_label_that_is_no_price_is_passed_over() -> None:
    cluster = Cluster(h100(labels={"hardware.kubenexus.io/cost-hour": "cheap"}))
    cluster.pod(bound("a"))
    assert [each.cost for each in cluster.usage.drain()] == [None]


def test_what_ended_is_forgotten_after_it_was_read() -> None:
    cluster = Cluster(h100())
    for number in range(50):
        cluster.pod(bound("p", namespace=f"ci-{number}"))
        cluster.clock.advance(1)
        cluster.end(f"ci-{number}/p")
    assert len(cluster.usage.drain()) == 50
    assert cluster.usage.drain() == []


def _shown(metrics: Metrics) -> list[str]:
    text = metrics.render()[0].decode()
    return [line for line in text.splitlines() if line.startswith(("kubenexus_tenant", "kubenexus_premium"))]


def test_the_metrics() -> None:
    metrics = Metrics()
    metrics.tenants.record(
        [
            Usage(UsageKey("research", "gold", PREMIUM), 8, 60, 1.5),
            Usage(UsageKey("web", "bronze", PREMIUM), 0.5, 30, None),
            Usage(UsageKey("web", "bronze", ECONOMY), 0, 10, None),
        ]
    )
    assert _shown(metrics) == [
        'kubenexus_tenant_gpus{hardware="premium",tenant="research",tier="gold"} 8.0',
        'kubenexus_tenant_gpus{hardware="premium",tenant="web",tier="bronze"} 0.5',
        'kubenexus_tenant_gpu_seconds_total{hardware="premium",tenant="research",tier="gold"} 60.0',
        'kubenexus_tenant_gpu_seconds_total{hardware="premium",tenant="web",tier="bronze"} 30.0',
        'kubenexus_tenant_gpu_seconds_total{hardware="economy",tenant="web",tier="bronze"} 10.0',
        'kubenexus_tenant_cost_total{hardware="premium",tenant="research",tier="gold"} 1.5',
        'kubenexus_premium_gpu_seconds_by_low_tiers_total{tenant="web",tier="bronze"} 30.0',
    ]


def test_tenants_beyond_the_first_ones_are_counted_together_and_no_counter_falls() -> None:
    metrics, before = Metrics(), 0.0
    for _ in range(3):
        metrics.tenants.record(
            [Usage(UsageKey(f"t{i}", "bronze", STANDARD), 1, 10, None) for i in range(MAX_TENANTS + 44)]
        )
        lines = [line for line in _shown(metrics) if line.startswith("kubenexus_tenant_gpu_seconds_total")]
        other = [line for line in lines if 'tenant="other"' in line]
        assert (len(lines), len(other)) == (MAX_TENANTS + 1, 1)
        now = float(other[0].rpartition(" ")[2])
        assert now == before + 440
        before = now
