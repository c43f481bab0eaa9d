"""Reports that no exporter writes: each is read, or tells nothing; none raises and none takes long."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import Run, a_ledger
from tests.api.numa.builders import GPU, a_numa_pod, an_nrt, guaranteed

Data = dict[str, Any]
PLANNER = Planner(profile_plugins(shipped_profile()))


def a_resource(name: str, amount: object, free: object = None) -> Data:
    return {"name": name, "capacity": amount, "allocatable": amount, "available": amount if free is None else free}


def a_zone(number: int | str, *resources: Data, costs: list[Data] | None = None) -> Data:
    return {"name": f"node-{number}", "type": "Node", "resources": list(resources), "costs": costs or []}


def a_report(*zones: Data) -> NodeResourceTopology:
    policy = [{"name": "topologyManagerPolicy", "value": "single-numa-node"}]
    data = {"metadata": {"name": "n"}, "zones": list(zones), "attributes": policy}
    return msgspec.json.decode(msgspec.json.encode(data), type=NodeResourceTopology)


CPU = a_resource("cpu", "8")


def a_cluster(report: NodeResourceTopology) -> Ledger:
    """A node that reported two NUMA nodes before, and then this."""
    ledger = a_ledger([a_node("n", cpu=64, memory="64Gi", resources={GPU: 4})])
    for each in (an_nrt([{"cpu": (8, 8, 8)}] * 2), report):
        ledger.upsert_node_topology(each)
        ledger.read_devices()
    return ledger


@pytest.mark.parametrize(
    ("report", "zones"),
    [
        pytest.param(a_report(*[a_zone(number, CPU) for number in range(10_000)]), 0, id="10,000 zones"),
        pytest.param(a_report(*[a_zone(0, CPU)] * 300), 0, id="300 zones of one name"),
        pytest.param(a_report(*[a_zone(number, CPU) for number in range(9)]), 0, id="more than a kubelet can align"),
        pytest.param(a_report(a_zone(0, a_resource("cpu", "NaN"))), 0, id="an amount that is no number"),
        pytest.param(a_report(a_zone(0, a_resource("cpu", "1e400"))), 0, id="an amount without end"),
        pytest.param(a_report(a_zone(0, a_resource("cpu", "9223372036854775807"))), 0, id="CPUs beyond any machine"),
        pytest.param(
            a_report(*[a_zone(number, a_resource("cpu", "1000")) for number in range(8)]), 0, id="too many CPUs in all"
        ),
        pytest.param(a_report(a_zone(0, CPU, a_resource(GPU, 10**6))), 0, id="a million GPUs"),
        pytest.param(
            a_report(a_zone(0, CPU, *[a_resource(f"x.io/{number}", 500) for number in range(30)])),
            0,
            id="15,000 devices of many kinds",
        ),
        pytest.param(a_report(a_zone("0", CPU), a_zone("x", CPU), a_zone("-1", CPU)), 1, id="zones with odd names"),
        pytest.param(a_report(a_zone(7, CPU), a_zone(3, CPU)), 2, id="other numbers than before"),
        pytest.param(a_report(), 0, id="no zones any more"),
        pytest.param(a_report(a_zone(0, a_resource("cpu", "-8"))), 1, id="a negative amount is none"),
        pytest.param(a_report(a_zone(0, a_resource("cpu", "8", "900"))), 1, id="more free than there is"),
        pytest.param(
            a_report(a_zone(0, CPU, costs=[{"name": "node-0", "value": -(2**63)}] * 20_000)), 1, id="costs of any size"
        ),
        pytest.param(
            a_report(a_zone(0, CPU, *[a_resource(f"x.io/{number}", 1) for number in range(5_000)])),
            1,
            id="5,000 resources, of which some are read",
        ),
    ],
)
def test_a_report_that_no_exporter_writes(report: NodeResourceTopology, zones: int) -> None:
    ledger = a_cluster(report)
    assert len(ledger.nodes.numa.codes_of(0)) == zones
    run = Run(ledger, PLANNER, {})
    small = a_numa_pod(guaranteed("main", "2", "1Gi", 1), name="small", uid="s")
    if "small" not in run.then([small]).placements:
        assert zones == 1  # the NUMA node has neither CPUs nor memory for it
    ledger.remove_node_topology("n")
    later = a_numa_pod(guaranteed("main", "2", "1Gi"), name="later", uid="l")
    assert run.then([later]).placements["later"] == "n"
