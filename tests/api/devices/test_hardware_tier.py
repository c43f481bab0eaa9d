"""The hardware tier of a node: its label in any wording first, else the families of its devices."""

import pytest

from kubenexus.api.devices.device import Device, DeviceKind
from kubenexus.api.devices.hardware_tier import HardwareTier, device_tier, devices_tier, hardware_tier
from kubenexus.api.devices.inventory import node_devices, node_facts
from kubenexus.api.devices.models import _FAMILIES, GOOGLE, HABANA
from kubenexus.testing.builders import a_node

NONE, ECONOMY, STANDARD, PREMIUM, UNKNOWN = HardwareTier
H100 = {"gpu.kubenexus.io/model": "H100"}


def tier_of_node(labels: dict[str, str], gpus: int) -> HardwareTier:
    node = a_node("n", gpu=gpus, labels=labels)
    return hardware_tier(node.metadata.labels, node_devices(node_facts(node)).devices)


@pytest.mark.parametrize(
    ("labels", "tier"),
    [
        pytest.param({"hardware.kubenexus.io/tier": "economy"}, ECONOMY, id="the label goes before the model"),
        pytest.param({"hardware.kubenexus.io/tier": "Standard"}, STANDARD, id="the label is read in any case"),
        pytest.param({"hardware.kubenexus.io/tier": "SILVER"}, STANDARD, id="TH-2: silver hardware is standard"),
        pytest.param({"hardware.kubenexus.io/tier": "bronze"}, ECONOMY, id="TH-2: bronze hardware is economy"),
        pytest.param({"hardware.kubenexus.io/gpu-tier": "bronze"}, ECONOMY, id="TH-3: the alias key is read"),
        pytest.param(
            {"hardware.kubenexus.io/tier": "standard", "hardware.kubenexus.io/gpu-tier": "bronze"},
            STANDARD,
            id="the canonical key goes before its alias",
        ),
        pytest.param(
            {"hardware.kubenexus.io/tier": "platinum", "hardware.kubenexus.io/gpu-tier": "bronze"},
            ECONOMY,
            id="a word that is no tier is passed over",
        ),
        pytest.param({"hardware.kubenexus.io/tier": "platinum"}, PREMIUM, id="with no readable label the model counts"),
        pytest.param({}, PREMIUM, id="without a label the model counts"),
    ],
)
def test_the_label(labels: dict[str, str], tier: HardwareTier) -> None:
    assert tier_of_node(H100 | labels, 8) is tier


@pytest.mark.parametrize("key", ["gpu.kubenexus.io/model", "hardware.kubenexus.io/gpu-model", "nvidia.com/gpu.product"])
@pytest.mark.parametrize(
    ("model", "tier"),
    [
        ("H100", PREMIUM),
        ("NVIDIA-H100-80GB-HBM3", PREMIUM),
        ("NVIDIA-H200", PREMIUM),
        ("NVIDIA-B200", PREMIUM),
        ("A100-80GB", PREMIUM),
        ("NVIDIA-A100-SXM4-80GB", PREMIUM),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", PREMIUM),
        ("A100", STANDARD),
        ("NVIDIA-A100-SXM4-40GB", STANDARD),
        ("A40", STANDARD),
        ("A6000", STANDARD),
        ("L4", ECONOMY),
        ("L40", ECONOMY),
        ("NVIDIA-L40S", ECONOMY),
        ("Tesla-T4", ECONOMY),
        ("NVIDIA-A10", ECONOMY),
        ("A16", ECONOMY),
        ("RTX-A4000", ECONOMY),
        ("A400000", UNKNOWN),
        ("XH100", UNKNOWN),
        ("Mystery-9000", UNKNOWN),
    ],
)
def test_the_model_in_every_spelling_of_the_key(key: str, model: str, tier: HardwareTier) -> None:
    assert tier_of_node({key: model}, 2) is tier


def test_a_node_without_devices_has_no_tier() -> None:
    assert tier_of_node({}, 0) is NONE


def test_gpus_of_which_no_model_is_known_are_no_fact() -> None:
    assert tier_of_node({}, 8) is UNKNOWN


def test_a_label_gives_a_tier_to_a_node_without_devices() -> None:
    assert tier_of_node({"hardware.kubenexus.io/tier": "premium"}, 0) is PREMIUM


def test_an_a100_is_premium_by_its_reported_memory() -> None:
    assert device_tier(Device(name="gpu-0", family="A100", model="A100", memory=81_920 << 20)) is PREMIUM
    assert device_tier(Device(name="gpu-0", family="A100", model="A100", memory=40_960 << 20)) is STANDARD


def test_a_mig_device_has_the_tier_of_its_card() -> None:
    slice_ = Device(name="mig-0", kind=DeviceKind.MIG, family="A100", model="NVIDIA-A100-SXM4-80GB", memory=10 << 30)
    assert device_tier(slice_) is PREMIUM


@pytest.mark.parametrize(
    ("families", "tier"),
    [
        pytest.param(["T4", "H100"], PREMIUM, id="of several the highest"),
        pytest.param(["T4", ""], ECONOMY, id="a known one before an unknown one"),
        pytest.param(["", ""], UNKNOWN, id="all unknown"),
        pytest.param([], NONE, id="no device"),
    ],
)
def test_a_node_of_several_models(families: list[str], tier: HardwareTier) -> None:
    assert devices_tier(Device(name=f"gpu-{i}", family=each) for i, each in enumerate(families)) is tier


def test_every_gpu_family_that_is_known_has_a_tier() -> None:
    unknown = {
        family.name
        for *_, vendor, family in _FAMILIES
        if device_tier(Device(name="gpu-0", family=family.name)) is UNKNOWN
    }
    assert {"TPU-v4", "Gaudi3", "Trainium"} <= unknown
    assert not {family.name for *_, family in _FAMILIES if family.kind is DeviceKind.GPU} & unknown
    assert {GOOGLE, HABANA} <= {vendor for *_, vendor, family in _FAMILIES if family.name in unknown}
