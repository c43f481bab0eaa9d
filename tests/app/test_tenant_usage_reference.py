"""The integral of `TenantUsage` equals that of a naive count of all pods second by second, for any sequence of binds,
ends, relabelled namespaces, nodes and pods, and readings."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubenexus.api.devices.hardware_tier import hardware_tier
from kubenexus.observe.tenant_metrics import UsageKey
from kubenexus.testing.builders import GPU, a_node, a_pod
from tests.app.test_tenant_usage import Cluster

NODES, NAMESPACES, PODS = ("n0", "n1", "n2"), ("ml", "web"), ("p0", "p1")
TIERS = st.sampled_from(["", "gold", "silver", "bronze", "tin"])
NAMES = st.sampled_from(["", "research", "shop"])
MODELS = st.sampled_from(["H100", "A100", "T4", "no such"])
LABELLED = st.sampled_from(["", "gold", "economy"])
PRICES = st.sampled_from(["", "8.00", "0.5", "cheap"])


class UsageMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.pods: dict[str, tuple[object, int, str]] = {}  # the pod, its GPUs and its node
        self.seconds: Counter[UsageKey] = Counter()
        self.cost: Counter[UsageKey] = Counter()
        self.found_seconds: Counter[UsageKey] = Counter()
        self.found_cost: Counter[UsageKey] = Counter()

    @initialize()
    def begin(self) -> None:
        for name in NODES:
            self.cluster.node(a_node(name, gpu=8))
        for namespace in NAMESPACES:
            self.namespace(namespace, "gold", "")

    @rule(name=st.sampled_from(NODES), model=MODELS, tier=LABELLED, price=PRICES)
    def node(self, name: str, model: str, tier: str, price: str) -> None:
        labels = {"gpu.kubenexus.io/model": model, "hardware.kubenexus.io/tier": tier}
        labels |= {"hardware.kubenexus.io/cost-hour": price}
        self.cluster.node(a_node(name, gpu=8, labels={key: text for key, text in labels.items() if text}))

    @rule(namespace=st.sampled_from(NAMESPACES), tier=TIERS, name=NAMES)
    def namespace(self, namespace: str, tier: str, name: str) -> None:
        self.cluster.namespace(namespace, tier=tier, name=name)

    @rule(
        name=st.sampled_from(PODS),
        namespace=st.sampled_from(NAMESPACES),
        gpus=st.integers(0, 4),
        node=st.sampled_from(NODES),
        tier=TIERS,
    )
    def bind_or_relabel(self, name: str, namespace: str, gpus: int, node: str, tier: str) -> None:
        """A pod that is known stays on its node with its GPUs, and may get another label."""
        key = f"{namespace}/{name}"
        if key in self.pods:
            _, gpus, node = self.pods[key]
        labels = {"tenant.kubenexus.io/tier": tier} if tier else {}
        pod = a_pod(name, namespace=namespace, requests={GPU: gpus} if gpus else {}, node=node, labels=labels)
        self.pods[key] = (pod, gpus, node)
        self.cluster.pod(pod)

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), tier=TIERS)
    def relabel(self, data: st.DataObject, tier: str) -> None:
        namespace, _, name = data.draw(st.sampled_from(sorted(self.pods))).partition("/")
        self.bind_or_relabel(name, namespace, 0, "", tier)

    @rule(key=st.sampled_from([f"{namespace}/{name}" for namespace in NAMESPACES for name in PODS]))
    def end(self, key: str) -> None:
        self.pods.pop(key, None)
        self.cluster.end(key)

    @rule(seconds=st.integers(1, 5000))
    def time_passes(self, seconds: int) -> None:
        columns = self.cluster.ledger.nodes
        for pod, gpus, node in self.pods.values():
            labels = columns.labels.of_row(columns.row_of[node])
            tier = hardware_tier(labels, self.cluster.ledger.devices_of(node).devices)
            key = UsageKey(*columns.tenants.of(pod), tier)  # type: ignore[arg-type]
            price = labels.get("hardware.kubenexus.io/cost-hour", "0").replace("cheap", "0")
            self.seconds[key] += gpus * seconds
            self.cost[key] += float(price) * gpus / 8 * seconds / 3600  # type: ignore[assignment]
        self.cluster.clock.advance(seconds)

    @rule()
    def read(self) -> None:
        for usage in self.cluster.usage.drain():
            self.found_seconds[usage.key] += usage.gpu_seconds  # type: ignore[assignment]
            self.found_cost[usage.key] += usage.cost or 0.0  # type: ignore[assignment]

    @invariant()
    def rates_are_those_of_the_pods(self) -> None:
        now = sum(gpus for _, gpus, _ in self.pods.values())
        held = sum(meter.rate.thousandths for meter in self.cluster.usage._meters.values())
        assert held == 1000 * now

    def teardown(self) -> None:
        self.read()
        for expected, found in ((self.seconds, self.found_seconds), (self.cost, self.found_cost)):
            for key in {*expected, *found}:
                assert abs(expected[key] - found[key]) < 1e-3, key


UsageMachine.TestCase.settings = settings(stateful_step_count=40, deadline=None)
TestUsage = UsageMachine.TestCase
