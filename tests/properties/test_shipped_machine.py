"""The laws of `test_machine` for the shipped profile, with pods that have workloads, tiers and GPUs."""

from typing import Any, ClassVar

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from kubenexus.api.core import Pod
from kubenexus.api.devices.device import Device, NodeDevices
from kubenexus.api.keys import gpu, network, tenant, workload
from kubenexus.framework.profile import ProfilePlugins, TieBreak
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.testing.builders import GPU, a_node, a_pod
from kubenexus.testing.harness import on_node
from tests.properties.test_machine import Machine, names, places
from tests.properties.test_ties import ties

WEB = {"app": "web"}


def a_workload(name: str, labels: dict[str, str] | None = None, **more: Any) -> Pod:
    return a_pod(name, labels=WEB | (labels or {}), **more)


# Each has something that another of our plugins reads.
SHIPPED = [
    a_workload("batch", {workload.BATCH.key: "job"}, cpu="250m", memory="512Mi"),
    a_workload("service", {workload.TYPE.key: "service"}, cpu="100m", annotations={tenant.SPREAD_ZONES.key: "true"}),
    a_workload("racks", cpu="100m", annotations={tenant.RACK_AFFINITY.key: "spread-rack", tenant.MIN_ZONES.key: "2"}),
    a_workload("together", cpu="100m", annotations={tenant.RACK_AFFINITY.key: "same-rack"}),
    a_workload("training", {workload.TYPE.key: "training"}, gpu=1, annotations={tenant.POD_TIER.key: "gold"}),
    a_workload("memory", gpu=1, annotations={gpu.VRAM_REQUEST.key: "40Gi"}),
    a_workload("pair", gpu=2, annotations={gpu.PREFER_NVLINK.key: "preferred", tenant.POD_TIER.key: "bronze"}),
    a_workload("part", cpu="100m", annotations={gpu.FRACTION.key: "0.5"}),
    a_workload("fabric", cpu=1, annotations={network.MIN_FABRIC.key: "roce", network.SENSITIVE.key: "true"}),
    a_workload("filler", cpu=1, priority=-1, annotations={tenant.BACKFILL.key: "true"}),
]
MARKS = st.fixed_dictionaries(
    {network.ZONE.key: st.sampled_from(["a", "b"]), network.REGION.key: st.sampled_from(["r", "s"])},
    optional={
        network.RACK.key: st.sampled_from(["r1", "r2"]),
        network.FABRIC_TYPE.key: st.sampled_from(["nvswitch", "roce", "none such"]),
        network.FABRIC_ID.key: st.sampled_from(["f1", "f2"]),
        gpu.HARDWARE_TIER.key: st.sampled_from(["premium", "economy"]),
        tenant.RESERVED_TIER.key: st.sampled_from(["gold", "none"]),
        gpu.COST_HOUR.key: st.sampled_from(["1", "3"]),
    },
)
CARDS = [
    NodeDevices(tuple(Device(name=f"gpu-{i}", memory=size << 30, resource=GPU) for i in range(2)), shared)
    for size in (24, 80)
    for shared in (False, True)
]


class ShippedMachine(Machine):
    """The same events, and nodes and pods that our own plugins score.

    Rows are not counted: a change of one node may change what all nodes of its domain cost a workload. The ledger is
    not compared with a rebuilt one: devices come from labels here, which the reference does not read.
    """

    counts_rows: ClassVar[bool] = False
    watched: ClassVar[list[Pod]] = SHIPPED
    rules_of: ClassVar[dict[TieBreak, ProfilePlugins]] = {
        tie_break: profile_plugins(ties(tie_break, shipped_profile())) for tie_break in TieBreak
    }

    def tell(self, event: str, *args: Any, **options: Any) -> None:
        super().tell(event, *args, **options)
        self.ledger.read_devices()

    def the_ledger_is_a_rebuilt_ledger(self) -> None:
        """Not a law here."""

    @rule(name=places, marks=MARKS, cards=st.sampled_from([*CARDS, None]))
    def a_node_with_topology_is_added(self, name: str, marks: dict[str, str], cards: NodeDevices | None) -> None:
        resources = {GPU: 2} if cards else {}
        self.tell("upsert_node", a_node(name, cpu=4, memory="8Gi", labels=marks, resources=resources))
        self.tell("set_devices", name, cards or NodeDevices())

    @rule(name=names, node=places, which=st.sampled_from(SHIPPED), app=st.sampled_from(["web", "db"]))
    def a_workload_runs_somewhere(self, name: str, node: str, which: Pod, app: str) -> None:
        meta = msgspec.structs.replace(
            which.metadata, name=name, uid=f"{name}-1", labels=which.metadata.labels | {"app": app}
        )
        self.tell("upsert_pod", on_node(msgspec.structs.replace(which, metadata=meta), node))


TestShippedMachine = ShippedMachine.TestCase
TestShippedMachine.settings = settings(max_examples=max(6, settings().max_examples // 10), stateful_step_count=20)
