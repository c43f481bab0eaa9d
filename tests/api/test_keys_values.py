"""What each kind of value reads and what it refuses, each refusal with a sentence that says what was expected."""

from decimal import Decimal
from typing import Any

import pytest

from kubenexus.api.keys import KeyEntry, gang, gpu, network, numa, tenant, workload
from kubenexus.base.errors import Malformed

GI = 2**30


@pytest.mark.parametrize(
    ("entry", "text", "value"),
    [
        pytest.param(tenant.TIER, "Gold", "gold", id="words are read in any case"),
        pytest.param(gpu.HARDWARE_TIER, "silver", "standard", id="tenant words name hardware tiers too"),
        pytest.param(numa.POLICY, "single-numa", "single-numa-node", id="the README's word for one NUMA node"),
        pytest.param(numa.POLICY, "SingleNUMANodePodLevel", "single-numa-node", id="the kubelet's word for it"),
        pytest.param(numa.POLICY, "exclusive", "isolated", id="exclusive is isolated"),
        pytest.param(numa.POLICY, "preferred", "best-effort", id="preferred is best-effort"),
        pytest.param(numa.POLICY, "disabled", "none", id="disabled is none"),
        pytest.param(gang.NUMA_SPREAD, "isolated", "isolated", id="isolated is a spread of gangs as well"),
        pytest.param(network.FABRIC_TYPE, "IB", "infiniband", id="ib is InfiniBand"),
        pytest.param(network.FABRIC_TYPE, "rdma", "roce", id="rdma is RoCE"),
        pytest.param(network.MIN_FABRIC, "eth", "ethernet", id="eth is Ethernet"),
        pytest.param(tenant.BACKFILL, " TRUE ", True, id="blanks around a value do not matter"),
        pytest.param(gang.MIN_AVAILABLE, "+8", 8, id="a sign before a number is fine"),
        pytest.param(numa.AFFINITY, "0, 1,", (0, 1), id="blanks and a last comma in a list"),
        pytest.param(numa.RESOURCES, "cpu,nvidia.com/gpu", ("cpu", "nvidia.com/gpu"), id="names of resources"),
        pytest.param(numa.CPUS, "0-3,8", (0, 1, 2, 3, 8), id="CPUs as the kernel prints them"),
        pytest.param(numa.CPUS, "0-3_8.9", (0, 1, 2, 3, 8, 9), id="CPUs as a label can hold them"),
        pytest.param(numa.CPUS, "4-6,0-5", (0, 1, 2, 3, 4, 5, 6), id="ranges that overlap"),
        pytest.param(numa.MEMORY, "68719476736", 64 * GI, id="memory in bytes"),
        pytest.param(numa.MEMORY, "64Gi", 64 * GI, id="memory as a quantity"),
        pytest.param(gpu.VRAM_REQUEST, "40GB", 40 * 10**9, id="GB as people write it"),
        pytest.param(gpu.VRAM_REQUEST, "40GiB", 40 * GI, id="GiB as people write it"),
        pytest.param(gpu.MODEL_SIZE, "7.5B", 7_500_000_000, id="billions of parameters"),
        pytest.param(gpu.MIN_NVLINK_BANDWIDTH, "300GB/s", 2_400_000_000_000, id="bytes a second"),
        pytest.param(network.BANDWIDTH, "200Gbps", 200_000_000_000, id="bits a second"),
        pytest.param(gpu.COST_HOUR, "10.00", Decimal("10.00"), id="a price is exact"),
        pytest.param(workload.DRIVER_CPU, "0.5", 500, id="cores in thousandths"),
    ],
)
def test_reads(entry: KeyEntry[Any], text: str, value: object) -> None:
    assert entry.values.parse(text) == value


@pytest.mark.parametrize(
    ("entry", "text", "says"),
    [
        pytest.param(tenant.TIER, "platinum", "must be one of gold, silver, bronze, not 'platinum'", id="word"),
        pytest.param(tenant.BACKFILL, "yes", "must be true or false, not 'yes'", id="bool"),
        pytest.param(gang.MIN_AVAILABLE, "0", "must be a whole number from 1, not", id="below the least"),
        pytest.param(gang.MIN_AVAILABLE, "9" * 30, "must be a whole number from 1, not", id="beyond int64"),
        pytest.param(gang.MIN_AVAILABLE, "1_000", "must be a whole number", id="Python's underscores"),
        pytest.param(gang.MIN_AVAILABLE, "٣", "must be a whole number", id="digits of another script"),
        pytest.param(numa.AFFINITY, "0,x", "must be a whole number from 0 to 1023, not 'x'", id="junk in a list"),
        pytest.param(numa.CPUS, "1-2-3", "must be CPU ids and ranges", id="a range of three"),
        pytest.param(numa.CPUS, "5-1", "must rise", id="a range that falls"),
        pytest.param(numa.CPUS, "0-99999", "end at 8191", id="a range that would fill the memory"),
        pytest.param(gpu.VRAM_REQUEST, "-1Gi", "must not be negative", id="less than nothing"),
        pytest.param(gpu.VRAM_REQUEST, "lots", "quantity", id="not a quantity"),
        pytest.param(network.BANDWIDTH, "200G", "must be a number with one of kbps", id="bits or bytes?"),
        pytest.param(gpu.COST_HOUR, "NaN", "must be a price such as 10.00, not 'NaN'", id="not a price"),
        pytest.param(gpu.MODEL_SIZE, "x" * 1000, "not 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'", id="cut"),
    ],
)
def test_refuses(entry: KeyEntry[Any], text: str, says: str) -> None:
    with pytest.raises(Malformed, match=says.replace("?", r"\?").replace("...", r"\.\.\.")):
        entry.values.parse(text)
