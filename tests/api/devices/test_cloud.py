"""Models of GPUs from the labels of clouds: which product each label means, and when it counts."""

import pytest

from kubenexus.api.devices.cloud_machines import MAX_NAME, accelerator_product, machine_product
from kubenexus.api.devices.device import UNKNOWN, DeviceKind, FactSource, Link
from kubenexus.api.devices.hardware_tier import HardwareTier, hardware_tier
from kubenexus.api.devices.inventory import NO_FACTS
from kubenexus.api.devices.models import find_model
from kubenexus.api.keys import discovered
from tests.api.devices.builders import GIB, column, devices_of, facts, gfd

GKE, KARPENTER = discovered.GKE_ACCELERATOR.key, discovered.KARPENTER_GPU.key
AZURE = discovered.KARPENTER_GPU.aliases[0].key
MEMORY, TYPE = discovered.KARPENTER_GPU_MEMORY.key, discovered.INSTANCE_TYPE.key
GPUS = {"nvidia.com/gpu": 8}


@pytest.mark.parametrize(
    ("labels", "family", "gib", "tier"),
    [
        pytest.param({GKE: "nvidia-tesla-t4"}, "T4", 16, "economy", id="GKE, T4 attached to an N1"),
        pytest.param({GKE: "nvidia-l4"}, "L4", 24, "economy", id="GKE, L4"),
        pytest.param({GKE: "nvidia-tesla-a100"}, "A100", 40, "standard", id="GKE, the A100 without a size has 40 GB"),
        pytest.param({GKE: "nvidia-a100-80gb"}, "A100", 80, "premium", id="GKE, A100 with 80 GB"),
        pytest.param({GKE: "nvidia-h100-80gb"}, "H100", 80, "premium", id="GKE, A3 High"),
        pytest.param({GKE: "nvidia-h100-mega-80gb"}, "H100", 80, "premium", id="GKE, A3 Mega"),
        pytest.param({GKE: "nvidia-h200-141gb"}, "H200", 141, "premium", id="GKE, A3 Ultra"),
        pytest.param({GKE: "nvidia-b200"}, "B200", 180, "premium", id="GKE, A4"),
        pytest.param({GKE: "nvidia-rtx-pro-6000"}, "RTX-PRO-6000", 96, "standard", id="GKE, G4"),
        pytest.param({KARPENTER: "a10g", MEMORY: "24576"}, "A10G", 24, "economy", id="Karpenter, A10G"),
        pytest.param({KARPENTER: "a100", MEMORY: "40960"}, "A100", 40, "standard", id="Karpenter, A100 with 40 GB"),
        pytest.param({KARPENTER: "a100", MEMORY: "81920"}, "A100", 80, "premium", id="Karpenter, A100 with 80 GB"),
        pytest.param({AZURE: "A100"}, "A100", 40, "standard", id="Karpenter in Azure: of two sizes the smaller"),
        pytest.param({TYPE: "p4de.24xlarge"}, "A100", 80, "premium", id="the type of the machine alone"),
        pytest.param(
            {AZURE: "A100", TYPE: "Standard_ND96amsr_A100_v4"}, "A100", 80, "premium", id="the type is more exact"
        ),
        pytest.param(
            {"beta.kubernetes.io/instance-type": "g4dn.xlarge"}, "T4", 16, "economy", id="the type in its old label"
        ),
        pytest.param({TYPE: "n1-standard-8", GKE: "nvidia-tesla-p4"}, "P4", 8, "economy", id="a type without GPUs"),
    ],
)
def test_a_label_of_the_cloud_names_the_model(labels: dict[str, str], family: str, gib: int, tier: str) -> None:
    found = devices_of(labels, GPUS).devices
    assert len(found) == 8
    assert {(each.family, each.memory) for each in found} == {(family, gib * GIB)}
    assert {each.sources["model"] for each in found} == {FactSource.CLOUD}
    assert hardware_tier(labels, found).label == tier


@pytest.mark.parametrize(
    ("machine", "family"),
    [
        ("p2.xlarge", "K80"),
        ("p3.2xlarge", "V100"),
        ("p3dn.24xlarge", "V100"),
        ("p4d.24xlarge", "A100"),
        ("p5.48xlarge", "H100"),
        ("p5e.48xlarge", "H200"),
        ("p5en.48xlarge", "H200"),
        ("p6-b200.48xlarge", "B200"),
        ("p6-b300.48xlarge", "B300"),
        ("p6e-gb200.36xlarge", "GB200"),
        ("g3s.xlarge", "M60"),
        ("g5.12xlarge", "A10G"),
        ("g5g.xlarge", "T4"),
        ("g6.xlarge", "L4"),
        ("gr6.4xlarge", "L4"),
        ("g6e.2xlarge", "L40S"),
        ("g7e.2xlarge", "RTX-PRO-6000"),
        ("trn1n.32xlarge", "Trainium"),
        ("trn2.48xlarge", "Trainium2"),
        ("inf1.xlarge", "Inferentia"),
        ("inf2.xlarge", "Inferentia2"),
        ("a2-highgpu-8g", "A100"),
        ("a2-ultragpu-1g", "A100"),
        ("a3-megagpu-8g", "H100"),
        ("a3-ultragpu-8g", "H200"),
        ("a4-highgpu-8g", "B200"),
        ("a4x-highgpu-4g", "GB200"),
        ("g2-standard-48", "L4"),
        ("g4-standard-48", "RTX-PRO-6000"),
        ("Standard_NC6s_v2", "P100"),
        ("Standard_NC24rs_v3", "V100"),
        ("Standard_NC64as_T4_v3", "T4"),
        ("Standard_NC24ads_A100_v4", "A100"),
        ("Standard_NC80adis_H100_v5", "H100"),
        ("Standard_ND40rs_v2", "V100"),
        ("Standard_ND96asr_v4", "A100"),
        ("Standard_ND96isr_H100_v5", "H100"),
        ("Standard_ND96isr_H200_v5", "H200"),
        ("Standard_ND96is_MI300X_v5", "MI300X"),
        ("Standard_NV36ads_A10_v5", "A10"),
    ],
)
def test_the_type_of_a_machine_names_a_product_that_the_models_have(machine: str, family: str) -> None:
    model = find_model(machine_product(machine))
    assert model is not None
    assert model.family == family


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param("m5.large", id="without GPUs"),
        pytest.param("g6f.xlarge", id="a part of a GPU"),
        pytest.param("Standard_NV6ads_A10_v5", id="a part of a GPU in Azure"),
        pytest.param("xp5.48xlarge", id="only from the beginning"),
        pytest.param("", id="empty"),
        pytest.param("p5." + "x" * MAX_NAME, id="too long"),
    ],
)
def test_other_types_say_nothing_and_are_no_facts(machine: str) -> None:
    assert machine_product(machine) == ""
    assert facts({TYPE: machine}) is NO_FACTS, "a node without devices costs nothing"
    (device,) = devices_of({TYPE: machine}, {"nvidia.com/gpu": 1}).devices
    assert (device.model, device.family, device.memory) == ("", "", UNKNOWN)


def test_a_name_that_no_table_has_is_shown_as_it_is() -> None:
    assert accelerator_product("nvidia-x9") == "nvidia-x9"
    (device,) = devices_of({GKE: "nvidia-x9"}, {"nvidia.com/gpu": 1}).devices
    assert (device.model, device.family) == ("nvidia-x9", "")
    assert hardware_tier({}, [device]) is HardwareTier.UNKNOWN


def test_better_sources_go_first() -> None:
    labels = {TYPE: "p5.48xlarge", KARPENTER: "h100", MEMORY: "81920"}
    found = devices_of(gfd("NVIDIA-L4", "23034") | labels, GPUS)
    assert column(found, "model") == ["NVIDIA-L4"] * 8
    (device,) = devices_of({**labels, "gpu.kubenexus.io/model": "T4"}, {"nvidia.com/gpu": 1}).devices
    assert (device.model, device.sources["model"]) == ("T4", FactSource.MANUAL)


PARTITION, COUNT = discovered.GKE_PARTITION.key, discovered.CLOUD_COUNT.key
SHARED = {
    GKE: "nvidia-l4",
    "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
    "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
}


def test_gpus_that_gke_divides_are_mig_devices_of_their_profile() -> None:
    found = devices_of({GKE: "nvidia-tesla-a100", PARTITION: "1g.5gb"}, {"nvidia.com/gpu": 7}).devices
    assert {(each.kind, each.profile, each.family, each.memory) for each in found} == {
        (DeviceKind.MIG, "1g.5gb", "A100", 5 * GIB)
    }
    assert len(found) == 7


def test_a_size_that_is_no_profile_leaves_the_memory_unknown() -> None:
    found = devices_of({GKE: "nvidia-tesla-a100", PARTITION: "small"}, {"nvidia.com/gpu": 2})
    assert {(each.model, each.memory) for each in found.devices} == {("", UNKNOWN)}
    assert found.warnings == ("cloud.google.com/gke-gpu-partition-size: 'small' is no MIG profile such as 1g.10gb",)


def test_gpus_that_gke_shares_are_few_cards_that_are_offered_often() -> None:
    found = devices_of(SHARED, {"nvidia.com/gpu": 8})
    assert [(each.family, each.replicas) for each in found.devices] == [("L4", 4), ("L4", 4)]
    assert found.shared


@pytest.mark.parametrize("key", sorted(discovered.CLOUD_COUNT.keys))
def test_more_cards_than_the_machine_has_are_shares_of_an_unknown_size(key: str) -> None:
    labels = {TYPE: "g4dn.xlarge", MEMORY: "16384", key: "1"}
    found = devices_of(labels, {"nvidia.com/gpu": 4})
    assert {(each.model, each.memory) for each in found.devices} == {("", UNKNOWN)}
    assert found.warnings == (
        "karpenter.k8s.aws/instance-gpu-count is 1, but the kubelet offers 4 cards: they are shares, of a size that no "
        "label states",
    )
    (device,) = devices_of(labels, {"nvidia.com/gpu": 1}).devices
    assert (device.family, device.memory) == ("T4", 16 * GIB)
    (first, *_) = devices_of(SHARED | {key: "2"}, {"nvidia.com/gpu": 8}).devices
    assert first.family == "L4", "shares that labels state are counted as the cards that they are"


def test_accelerators_of_ec2() -> None:
    (device,) = devices_of({TYPE: "trn1.2xlarge"}, {"aws.amazon.com/neuron": 1}).devices
    assert (device.family, device.memory) == ("Trainium", 32 * GIB)


def test_cards_of_a_machine_with_a_switch_are_joined() -> None:
    found = devices_of({TYPE: "p5.48xlarge"}, GPUS).devices
    assert {(each.island, each.link) for each in found} == {(0, Link.NVSWITCH)}


def test_the_model_of_one_vendor_is_not_put_on_cards_of_another() -> None:
    (device,) = devices_of({TYPE: "p5.48xlarge", MEMORY: "81920"}, {"amd.com/gpu": 1}).devices
    assert (device.model, device.memory) == ("", UNKNOWN)
    (device,) = devices_of({GKE: "nvidia-x9"}, {"google.com/tpu": 1}).devices
    assert device.model == ""


def test_a_mig_device_has_the_model_of_its_card_and_its_own_memory() -> None:
    (device,) = devices_of({TYPE: "p5.48xlarge", MEMORY: "81920"}, {"nvidia.com/mig-1g.10gb": 1}).devices
    assert (device.family, device.memory) == ("H100", 10 * GIB)
