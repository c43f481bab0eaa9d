"""The cards of machines in clouds: by the instance type, and by the labels that name the accelerator of a machine.

A row is a family of machines whose cards are all of one product, whole ones. Machines with a part of a card (`g6f`, the
smaller `NVads_A10_v5`) are not here: the memory that such a machine has is not that of the product.
"""

import functools
import re
from typing import Final

MAX_NAME: Final = 128  # characters; a longer text is no name of a machine

_A100_40, _A100_80 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"
_H100, _H200, _B200 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200", "NVIDIA-B200"
_V100_16, _V100_32 = "Tesla-V100-SXM2-16GB", "Tesla-V100-SXM2-32GB"
_RTX_PRO: Final = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"

# Instance types of EC2: the family before the dot.
_EC2: Final = {
    r"p2\.": "Tesla-K80",
    r"p3\.": _V100_16,
    r"p3dn\.": _V100_32,
    r"p4d\.": _A100_40,
    r"p4de\.": _A100_80,
    r"p5\.": _H100,
    r"p5en?\.": _H200,
    r"p6-b200\.": _B200,
    r"p6-b300\.": "NVIDIA-B300",
    r"p6e-gb200\.": "NVIDIA-GB200",
    r"g3s?\.": "Tesla-M60",
    r"g4dn\.": "Tesla-T4",
    r"g5\.": "NVIDIA-A10G",
    r"g5g\.": "NVIDIA-T4G",
    r"gr?6\.": "NVIDIA-L4",
    r"g6e\.": "NVIDIA-L40S",
    r"g7e\.": _RTX_PRO,
    r"trn1n?\.": "Trainium",
    r"trn2u?\.": "Trainium2",
    r"inf1\.": "Inferentia",
    r"inf2\.": "Inferentia2",
}
# Machine types of Compute Engine that have accelerators of their own. To others (N1) any are attached: only the label
# of GKE names it.
_COMPUTE_ENGINE: Final = {
    r"a2-(?:high|mega)gpu-": _A100_40,
    r"a2-ultragpu-": _A100_80,
    r"a3-(?:high|mega|edge)gpu-": _H100,
    r"a3-ultragpu-": _H200,
    r"a4-highgpu-": _B200,
    r"a4x-highgpu-": "NVIDIA-GB200",
    r"g2-standard-": "NVIDIA-L4",
    r"g4-standard-": _RTX_PRO,
}
# Sizes of Azure.
_AZURE: Final = {
    r"standard_nc\d+r?s_v2$": "Tesla-P100-PCIE-16GB",
    r"standard_nc\d+r?s_v3$": "Tesla-V100-PCIE-16GB",
    r"standard_nc\d+as_t4_v3$": "Tesla-T4",
    r"standard_nc\d+ads_a100_v4$": "NVIDIA-A100-80GB-PCIe",
    r"standard_ncc?\d+adi?s_h100_v5$": "NVIDIA-H100-NVL",
    r"standard_nd\d+rs_v2$": _V100_32,
    r"standard_nd\d+asr(?:_a100)?_v4$": _A100_40,
    r"standard_nd\d+amsr_a100_v4$": _A100_80,
    r"standard_nd\d+isr?f?_h100_v5$": _H100,
    r"standard_nd\d+isr?f?_h200_v5$": _H200,
    r"standard_nd\d+isr?f?_mi300x_v5$": "AMD-Instinct-MI300X",
    r"standard_nv(?:36|72)adm?s_a10_v5$": "NVIDIA-A10",
}
_MACHINES: Final = tuple(
    (re.compile(pattern), product) for table in (_EC2, _COMPUTE_ENGINE, _AZURE) for pattern, product in table.items()
)
# Names of accelerators that are those of one product in their cloud. All other names are read as they are.
_ACCELERATORS: Final = {
    "nvidia-tesla-v100": _V100_16,
    "nvidia-tesla-a100": _A100_40,
    "nvidia-a100-80gb": _A100_80,
    "nvidia-h100-80gb": _H100,
    "nvidia-h100-mega-80gb": _H100,
}


def machine_product(instance_type: str) -> str:
    """Returns the product of the cards in machines of a type, or "" if the type is not in the table."""
    return _product(instance_type) if len(instance_type) <= MAX_NAME else ""


@functools.lru_cache(maxsize=1024)
def _product(instance_type: str) -> str:
    name = instance_type.strip().lower()
    return next((product for pattern, product in _MACHINES if pattern.match(name)), "")


def accelerator_product(name: str) -> str:
    """Returns the product that the name of an accelerator means, or the name itself."""
    return _ACCELERATORS.get(name.lower(), name)
