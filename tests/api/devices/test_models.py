"""What the name of a model implies, against what vendors sell."""

import pytest

from kubenexus.api.devices.device import UNKNOWN, DeviceKind, Link
from kubenexus.api.devices.models import find_model, profile_memory, split_product
from kubenexus.api.devices.pci_ids import MODEL_NAMES

GIB = 2**30
NONE = Link.UNKNOWN

# name, family, GiB, link, GB/s (0: not known)
MODELS = [
    ("NVIDIA-A100-SXM4-80GB", "A100", 80, Link.NVSWITCH, 600),
    ("NVIDIA-A100-SXM4-40GB", "A100", 40, Link.NVSWITCH, 600),
    ("NVIDIA-A100-SXM-64GB", "A100", 64, Link.NVSWITCH, 600),
    ("NVIDIA-A100-80GB-PCIe", "A100", 80, NONE, 0),
    ("NVIDIA-A100-PCIE-40GB", "A100", 40, NONE, 0),
    ("A100-80GB", "A100", 80, NONE, 0),
    ("A100", "A100", 40, NONE, 0),
    ("nvidia-a100", "A100", 40, NONE, 0),
    ("NVIDIA-A100X", "A100X", 80, NONE, 0),
    ("NVIDIA-A800-SXM4-80GB", "A800", 80, Link.NVSWITCH, 400),
    ("NVIDIA-H100-80GB-HBM3", "H100", 80, Link.NVSWITCH, 900),
    ("NVIDIA H100 80GB HBM3", "H100", 80, Link.NVSWITCH, 900),
    ("H100-SXM5-80GB", "H100", 80, Link.NVSWITCH, 900),
    ("HGX-H100", "H100", 80, Link.NVSWITCH, 900),
    ("DGX-A100-80GB", "A100", 80, Link.NVSWITCH, 600),
    ("NVIDIA-H100-PCIe", "H100", 80, NONE, 0),
    ("NVIDIA-H100-NVL", "H100", 94, NONE, 0),
    ("H100", "H100", 80, NONE, 0),
    ("H100-80GB", "H100", 80, NONE, 0),
    ("NVIDIA-H200", "H200", 141, Link.NVSWITCH, 900),
    ("NVIDIA-H200-NVL", "H200", 141, NONE, 0),
    ("NVIDIA-H20", "H20", 96, Link.NVSWITCH, 900),
    ("NVIDIA-H800", "H800", 80, Link.NVSWITCH, 400),
    ("NVIDIA-H800-PCIe", "H800", 80, NONE, 0),
    ("NVIDIA-GH200-480GB", "GH200", 96, NONE, 0),
    ("NVIDIA-GH200-120GB", "GH200", 96, NONE, 0),
    ("NVIDIA-GH200-144G-HBM3e", "GH200", 144, NONE, 0),
    ("NVIDIA-B200", "B200", 180, Link.NVSWITCH, 1800),
    ("NVIDIA-GB200", "GB200", 186, Link.NVSWITCH, 1800),
    ("NVIDIA-B300-SXM6-AC", "B300", 288, Link.NVSWITCH, 1800),
    ("Tesla-V100-SXM2-16GB", "V100", 16, Link.NVLINK, 300),
    ("Tesla-V100-SXM2-32GB", "V100", 32, Link.NVLINK, 300),
    ("Tesla-V100-SXM3-32GB", "V100", 32, Link.NVSWITCH, 300),
    ("Tesla-V100-PCIE-32GB", "V100", 32, NONE, 0),
    ("Tesla-V100S-PCIE-32GB", "V100S", 32, NONE, 0),
    ("V100", "V100", 16, NONE, 0),
    ("Tesla-P100-SXM2-16GB", "P100", 16, Link.NVLINK, 160),
    ("Tesla-T4", "T4", 16, NONE, 0),
    ("NVIDIA-A10", "A10", 24, NONE, 0),
    ("NVIDIA-A10G", "A10G", 24, NONE, 0),
    ("NVIDIA-A16", "A16", 16, NONE, 0),
    ("NVIDIA-A2", "A2", 16, NONE, 0),
    ("NVIDIA-A30", "A30", 24, NONE, 0),
    ("NVIDIA-A40", "A40", 48, NONE, 0),
    ("NVIDIA-L4", "L4", 24, NONE, 0),
    ("NVIDIA-L40", "L40", 48, NONE, 0),
    ("NVIDIA-L40S", "L40S", 48, NONE, 0),
    ("NVIDIA-L20", "L20", 48, NONE, 0),
    ("NVIDIA-RTX-A4000", "RTX-A4000", 16, NONE, 0),
    ("RTX-A4000", "RTX-A4000", 16, NONE, 0),
    ("NVIDIA-RTX-A6000", "RTX-A6000", 48, NONE, 0),
    ("A6000", "RTX-A6000", 48, NONE, 0),
    ("Quadro-RTX-6000", "RTX-6000", 24, NONE, 0),
    ("RTX6000", "RTX-6000", 24, NONE, 0),
    ("Quadro-RTX-8000", "RTX-8000", 48, NONE, 0),
    ("NVIDIA-RTX-6000-Ada-Generation", "RTX-6000-Ada", 48, NONE, 0),
    ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "RTX-PRO-6000", 96, NONE, 0),
    ("NVIDIA-GeForce-RTX-3090", "RTX-3090", 24, NONE, 0),
    ("NVIDIA-GeForce-RTX-3080", "RTX-3080", 10, NONE, 0),
    ("NVIDIA-GeForce-RTX-3080-12GB", "RTX-3080", 12, NONE, 0),
    ("MI300X", "MI300X", 192, Link.XGMI, 896),
    ("AMD_Instinct_MI300X_OAM", "MI300X", 192, Link.XGMI, 896),
    ("AMD-Instinct-MI325X", "MI325X", 256, Link.XGMI, 896),
    ("MI355X", "MI355X", 288, Link.XGMI, 1075),
    ("MI250", "MI250", 64, Link.XGMI, 0),
    ("MI210", "MI210", 64, NONE, 0),
    ("Intel-Data-Center-GPU-Max-1550", "Max-1550", 128, NONE, 0),
    ("Intel(R) Data Center GPU Flex 170", "Flex-170", 16, NONE, 0),
    ("Gaudi", "Gaudi", 32, NONE, 0),
    ("Gaudi2", "Gaudi2", 96, NONE, 0),
    ("HL-225", "Gaudi2", 96, NONE, 0),
    ("Intel-Gaudi-3", "Gaudi3", 128, NONE, 0),
    ("Trainium2", "Trainium2", 96, NONE, 0),
    ("TPU-v5e", "TPU-v5e", 16, NONE, 0),
]


@pytest.mark.parametrize(("name", "family", "gib", "link", "speed"), MODELS, ids=[row[0] for row in MODELS])
def test_family_memory_and_link(name: str, family: str, gib: int, link: Link, speed: int) -> None:
    model = find_model(name)
    assert model is not None
    assert (model.family, model.memory // GIB, model.link) == (family, gib, link)
    assert model.bandwidth == (speed * 8 * 10**9 if speed else UNKNOWN)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="no name"),
        pytest.param("RTX-A4", id="the beginning of a family"),
        pytest.param("XA100", id="a family at the end of a word"),
        pytest.param("A1000", id="a family at the beginning of a word"),
        pytest.param("FOO-A100", id="a family after another word"),
        pytest.param("LATEST-GPU-MODEL", id="the model of the example driver"),
        pytest.param("A100" + "-" * 200, id="a text that is too long for a name"),
        pytest.param("NVIDIA-" * 18, id="brands alone"),
    ],
)
def test_a_name_that_is_in_no_family(name: str) -> None:
    assert find_model(name) is None


@pytest.mark.parametrize("name", ["Gaudi2", "HL-325L", "TPU-v4", "Inferentia2"])
def test_accelerators_are_no_gpus(name: str) -> None:
    model = find_model(name)
    assert model is not None
    assert model.kind is DeviceKind.ACCELERATOR


@pytest.mark.parametrize(
    ("vendor", "device"), [(vendor, each) for vendor in MODEL_NAMES for each in MODEL_NAMES[vendor]]
)
def test_each_pci_id_means_a_model_of_its_vendor(vendor: str, device: str) -> None:
    model = find_model(MODEL_NAMES[vendor][device])
    assert model is not None
    assert model.vendor == vendor
    assert model.memory > 0


# The table of the specification, with what the ids really are.
@pytest.mark.parametrize(
    ("vendor", "device", "family", "gib", "link"),
    [
        ("nvidia", "2330", "H100", 80, Link.NVSWITCH),
        ("nvidia", "2331", "H100", 80, NONE),
        ("nvidia", "2322", "H800", 80, NONE),
        ("nvidia", "2324", "H800", 80, Link.NVSWITCH),
        ("nvidia", "2335", "H200", 141, Link.NVSWITCH),
        ("nvidia", "233b", "H200", 141, NONE),
        ("nvidia", "20b0", "A100", 40, Link.NVSWITCH),
        ("nvidia", "20b1", "A100", 40, NONE),
        ("nvidia", "20f1", "A100", 40, NONE),
        ("nvidia", "20b2", "A100", 80, Link.NVSWITCH),
        ("nvidia", "20b5", "A100", 80, NONE),
        ("nvidia", "26b5", "L40", 48, NONE),
        ("nvidia", "26b1", "RTX-6000-Ada", 48, NONE),
        ("nvidia", "26b9", "L40S", 48, NONE),
        ("nvidia", "27b8", "L4", 24, NONE),
        ("nvidia", "2235", "A40", 48, NONE),
        ("nvidia", "20b7", "A30", 24, NONE),
        ("nvidia", "1eb8", "T4", 16, NONE),
        ("nvidia", "1db1", "V100", 16, Link.NVLINK),
        ("nvidia", "1db4", "V100", 16, NONE),
        ("nvidia", "1db5", "V100", 32, Link.NVLINK),
        ("nvidia", "1db6", "V100", 32, NONE),
        ("nvidia", "2204", "RTX-3090", 24, NONE),
        ("nvidia", "2206", "RTX-3080", 10, NONE),
        ("nvidia", "2901", "B200", 180, Link.NVSWITCH),
        ("nvidia", "2941", "GB200", 186, Link.NVSWITCH),
        ("nvidia", "2bb5", "RTX-PRO-6000", 96, NONE),
        ("nvidia", "2329", "H20", 96, Link.NVSWITCH),
        ("amd", "740f", "MI210", 64, NONE),
        ("amd", "740c", "MI250X", 64, Link.XGMI),
        ("amd", "7408", "MI250X", 64, Link.XGMI),
        ("amd", "738c", "MI100", 32, NONE),
        ("amd", "74a1", "MI300X", 192, Link.XGMI),
        ("amd", "74a5", "MI325X", 256, Link.XGMI),
        ("intel", "0bd5", "Max-1550", 128, NONE),
        ("intel", "56c0", "Flex-170", 16, NONE),
        ("intel", "56c1", "Flex-140", 6, NONE),
    ],
)
def test_pci_ids_of_the_specification(vendor: str, device: str, family: str, gib: int, link: Link) -> None:
    model = find_model(MODEL_NAMES[vendor][device])
    assert model is not None
    assert (model.family, model.memory // GIB, model.link) == (family, gib, link)


@pytest.mark.parametrize(
    ("product", "parts"),
    [
        pytest.param("NVIDIA-A100-SXM4-40GB", ("NVIDIA-A100-SXM4-40GB", ""), id="a whole card"),
        pytest.param("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", ("NVIDIA-A100-SXM4-40GB", "1g.5gb"), id="a MIG device"),
        pytest.param("Tesla-T4-SHARED", ("Tesla-T4", ""), id="a shared card"),
        pytest.param(
            "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me-SHARED",
            ("NVIDIA-H100-80GB-HBM3", "1g.10gb.me"),
            id="a shared MIG device with media engines",
        ),
    ],
)
def test_a_product_is_split_into_model_and_profile(product: str, parts: tuple[str, str]) -> None:
    assert split_product(product) == parts


@pytest.mark.parametrize(
    ("profile", "memory"),
    [
        ("1g.5gb", 5 * GIB),
        ("1g.10gb", 10 * GIB),
        ("1g.10gb.me", 10 * GIB),
        ("7g.141gb", 141 * GIB),
        ("1c.3g.40gb", 40 * GIB),
        ("", UNKNOWN),
        ("1g", UNKNOWN),
        ("x1g.5gb", UNKNOWN),
        ("1g.5gb" * 50, UNKNOWN),
    ],
)
def test_nominal_memory_of_a_profile(profile: str, memory: int) -> None:
    assert profile_memory(profile) == memory
