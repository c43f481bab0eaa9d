"""The pages on workloads and tenants: valid configurations, and the reasons, weights and numbers of the code."""

import re
from typing import Any

import pytest

from kubenexus.api.classification.workload_type import WorkloadType
from kubenexus.api.devices.hardware_tier import HardwareTier
from kubenexus.config.args import TenantHardwareAffinityScoreArgs
from kubenexus.framework.verdict import Reason
from kubenexus.plugins.tenant import hardware_affinity
from kubenexus.plugins.workload import backfill, utilization, workload_aware
from tests.plugins.plugin_pages import check_page, text_of

MODULES: dict[str, Any] = {
    "WorkloadAwareScoring": workload_aware,
    "BackfillScoring": backfill,
    "TenantHardwareAffinityScore": hardware_affinity,
}
COLUMNS = (
    HardwareTier.PREMIUM,
    HardwareTier.STANDARD,
    HardwareTier.ECONOMY,
    HardwareTier.UNKNOWN,
    HardwareTier.NONE,
)


@pytest.mark.parametrize("name", MODULES)
def test_a_page_has_its_maturity_its_weight_and_a_valid_configuration(name: str) -> None:
    check_page(name)


@pytest.mark.parametrize(("name", "module"), MODULES.items())
def test_a_page_has_the_reasons_of_its_plugin(name: str, module: Any) -> None:
    reasons = [each.text for each in vars(module).values() if isinstance(each, Reason)]
    assert bool(reasons) == (name == "TenantHardwareAffinityScore")
    assert [text for text in reasons if f"`{text}`" not in text_of(name)] == []


def test_the_page_on_workloads_has_the_strategy_of_each_kind_and_the_weights_of_resources() -> None:
    page = text_of("WorkloadAwareScoring")
    rows = dict(re.findall(r"^\| (\w+) \| (packed|spread) \|$", page, re.MULTILINE))
    assert rows == {str(kind): "packed" if kind.packs else "spread" for kind in WorkloadType}
    cpu, memory, devices = utilization.Weights()
    assert cpu == memory
    assert f"cpu and memory count {cpu} % each and GPUs {devices} %" in page


def test_the_page_on_backfill_has_the_points_of_the_code() -> None:
    page = text_of("BackfillScoring")
    assert f"Ordinary pods have {backfill.NEUTRAL} points" in page
    assert f"{backfill.PER_RANK} points are taken for each tier" in page
    assert f"has {2 * backfill.PER_RANK} points less on a node that is reserved for gold" in page


def test_the_page_on_hardware_has_the_points_and_the_settings_of_the_code() -> None:
    page = text_of("TenantHardwareAffinityScore")
    rows = re.findall(r"^\| (gold|silver|bronze|any tenant) \| ([\d| ]+) \|$", page, re.MULTILINE)
    points = {name: tuple(map(int, cells.split(" | "))) for name, cells in rows}
    rest = (hardware_affinity.NOT_KNOWN, hardware_affinity.NEUTRAL)
    expected = {tier: (*usual, *rest) for tier, usual in hardware_affinity.POINTS.items()}
    assert points == expected | {"any tenant": tuple(hardware_affinity.CPU_ONLY[tier] for tier in COLUMNS)}
    settings = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert settings == [
        each for each in TenantHardwareAffinityScoreArgs.__struct_encode_fields__ if each != "apiVersion"
    ]
