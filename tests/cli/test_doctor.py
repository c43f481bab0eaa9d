"""`kubenexus doctor` on a served cluster."""

import asyncio
import json
import random
from typing import Any

from click.testing import CliRunner, Result

from kubenexus.base.clock import WallClock
from kubenexus.base.timestamps import format_time
from kubenexus.cli import main
from kubenexus.client import kinds
from kubenexus.client.verbs import create
from kubenexus.explain.cluster_dump import read_dump
from kubenexus.explain.doctor import check_cluster
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedClusterSpec, open_embedded_cluster
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.explain.test_explanation import node

SYSTEM = "kubenexus-system"


def doctor(renewed: float | None) -> Result:
    """`renewed`: the seconds since the lease was renewed; None: there is no lease."""

    async def asked() -> Result:
        clock = WallClock()
        spec = EmbeddedClusterSpec(NodeTemplate(prefix="n").nodes(2, clock.now()), AgentSettings(), controllers=False)
        async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
            if renewed is not None:
                await box.client.send(create(kinds.NAMESPACES, {"metadata": {"name": SYSTEM}}))
                said: dict[str, Any] = {"holderIdentity": "a", "leaseDurationSeconds": 15}
                moment = format_time(clock.now() - renewed).replace("Z", ".000000Z")
                lease = {"metadata": {"name": "kubenexus-scheduler"}, "spec": {**said, "renewTime": moment}}
                await box.client.send(create(kinds.LEASES, lease, SYSTEM))
            command = ["doctor", "--kubeconfig", str(box.kubeconfig), "-o", "json"]
            return await asyncio.to_thread(CliRunner().invoke, main, command)

    return asyncio.run(asked())


def states(result: Result) -> dict[str, str]:
    return {each["name"]: each["state"] for each in json.loads(result.output)}


def test_a_leader_that_renews_its_lease_is_healthy() -> None:
    result = doctor(2.0)
    assert result.exit_code == 0, result.output
    found = states(result)
    assert (found["version"], found["lease"], found["clock"], found["labels"]) == ("ok", "ok", "ok", "ok")


def test_a_lease_that_is_not_renewed_fails() -> None:
    result = doctor(120.0)
    assert result.exit_code == 2
    assert states(result)["lease"] == "fail"


def test_a_lease_of_the_future_is_a_clock_that_is_wrong() -> None:
    assert states(doctor(-60.0))["clock"] == "warn"


def test_without_a_lease_no_scheduler_has_led() -> None:
    result = doctor(None)
    assert result.exit_code == 2
    assert "no scheduler has led yet" in result.output


def test_labels_on_some_nodes_only_are_named() -> None:
    racked = node("a")
    racked["metadata"]["labels"]["network.kubenexus.io/rack-id"] = "r1"
    raw = json.dumps({"kind": "List", "items": [racked, node("b")]}).encode()
    texts = [check.text for check in check_cluster(read_dump(raw, "dump"))]
    assert "1 of 2 nodes have no label of the level rack: b" in texts


def test_reports_of_numa_nodes_that_cannot_be_used_are_named() -> None:
    zones = [{"name": f"node-{number}", "type": "Node"} for number in range(300)]
    report = {"kind": "NodeResourceTopology", "apiVersion": "topology.node.k8s.io/v1alpha2", "zones": zones}
    raw = json.dumps({"kind": "List", "items": [node("a"), node("b"), {**report, "metadata": {"name": "a"}}]}).encode()
    (found,) = [check for check in check_cluster(read_dump(raw, "dump")) if check.name == "numa"]
    assert found.text == "1 nodes with a NodeResourceTopology that cannot be used: a: 300 zones, of at most 256"
    assert found.state == "warn"


def test_an_account_without_a_namespace_is_refused() -> None:
    result = CliRunner().invoke(main, ["doctor", "--account", "x"])
    assert result.exit_code == 2
    assert "--account: expected NAMESPACE/NAME, not 'x'" in result.output
