"""DeviceTaintRules: taints that an administrator puts on devices."""

from typing import Any

import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.devices.device_taint_rule import DeviceTaintRule
from kubenexus.state.ledger import Ledger
from tests.plugins.dynamic_resources.cluster import (
    DRIVER,
    a_cluster,
    a_device,
    a_request,
    a_slice,
    a_spec,
    devices,
)

ONE, TWO = a_spec(a_request()), a_spec(a_request(count=2))
TOLERANT = a_spec(a_request(count=2, tolerations=[{"key": "broken", "operator": "Exists"}]))


def a_rule(name: str = "rule", effect: str = "NoSchedule", **selector: str) -> DeviceTaintRule:
    taint = {"key": "broken", "value": "yes", "effect": effect}
    return a_rule_of({"taint": taint, "deviceSelector": selector}, name)


def a_rule_of(spec: dict[str, Any], name: str = "rule") -> DeviceTaintRule:
    return from_data({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule)


def cluster(*rules: DeviceTaintRule) -> Ledger:
    made = a_cluster(a_slice("s", [a_device("d0"), a_device("d1")]))
    assert devices(made, TWO) == [["d0", "d1"]]
    for each in rules:
        made.upsert_device_taint_rule(each)
    return made


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        pytest.param(a_rule(), "", id="all devices"),
        pytest.param(
            a_rule_of({"taint": {"key": "a", "effect": "NoSchedule"}}), [["d0"]], id="none, without a selector"
        ),
        pytest.param(a_rule(driver=DRIVER), "", id="all devices of the driver"),
        pytest.param(a_rule(driver="other"), [["d0"]], id="devices of another driver"),
        pytest.param(a_rule(pool="n1"), "", id="all devices of the pool"),
        pytest.param(a_rule(pool="n2"), [["d0"]], id="devices of another pool"),
        pytest.param(a_rule(driver=DRIVER, pool="n1", device="d0"), [["d1"]], id="one device"),
        pytest.param(a_rule(device="d1"), [["d0"]], id="devices of a name"),
        pytest.param(a_rule(effect="NoExecute", device="d0"), [["d1"]], id="a taint that also evicts"),
        pytest.param(a_rule(effect="None"), [["d0"]], id="a taint without an effect"),
    ],
)
def test_a_rule_taints_the_devices_that_it_selects(rule: DeviceTaintRule, left: Any) -> None:
    assert devices(cluster(rule), ONE) == left


def test_a_claim_can_tolerate_the_taint_of_a_rule() -> None:
    assert devices(cluster(a_rule()), TOLERANT) == [["d0", "d1"]]


def test_devices_come_back_when_the_rule_changes_or_goes() -> None:
    made = cluster(a_rule(), a_rule("other", device="d1"))
    assert devices(made, ONE) == ""
    made.upsert_device_taint_rule(a_rule(device="d1"))
    assert devices(made, ONE) == [["d0"]]
    made.remove_device_taint_rule("rule")
    assert devices(made, TWO) == ""
    made.remove_device_taint_rule("other")
    assert devices(made, TWO) == [["d0", "d1"]]


def test_a_rule_is_for_slices_that_come_later_and_for_those_of_all_nodes() -> None:
    made = cluster(a_rule(pool="net"))
    made.upsert_resource_slice(a_slice("net", [a_device("x")], pool="net", allNodes=True))
    assert devices(made, a_spec(a_request(count=3))) == ""
    made.remove_device_taint_rule("rule")
    assert devices(made, a_spec(a_request(count=3))) == [["d0", "d1", "x"]]
