"""PCI ids of GPUs and accelerators, as the names of models that `models` knows.

The ids are those of the PCI ID repository. An id that is not here says nothing: a vendor also makes network cards,
switches and audio devices.
"""

from typing import Final

from kubenexus.api.devices.models import AMD, GOOGLE, HABANA, INTEL, NVIDIA

VENDORS: Final[dict[str, str]] = {"10de": NVIDIA, "1002": AMD, "8086": INTEL, "1da3": HABANA, "1ae0": GOOGLE}

_NVIDIA: Final = {
    "1db1": "V100-SXM2-16GB",
    "1db4": "V100-PCIE-16GB",
    "1db5": "V100-SXM2-32GB",
    "1db6": "V100-PCIE-32GB",
    "1db8": "V100-SXM3-32GB",
    "1df6": "V100S-PCIE-32GB",
    "1eb8": "T4",
    "20b0": "A100-SXM4-40GB",
    "20b1": "A100-PCIE-40GB",
    "20b2": "A100-SXM4-80GB",
    "20b3": "A100-SXM4-64GB",
    "20b5": "A100-PCIE-80GB",
    "20b7": "A30",
    "20b8": "A100X",
    "20b9": "A30X",
    "20bd": "A800-SXM4-40GB",
    "20f1": "A100-PCIE-40GB",
    "20f3": "A800-SXM4-80GB",
    "20f5": "A800-PCIE-80GB",
    "20f6": "A800-PCIE-40GB",
    "2203": "RTX-3090-Ti",
    "2204": "RTX-3090",
    "2206": "RTX-3080",
    "2230": "RTX-A6000",
    "2231": "RTX-A5000",
    "2235": "A40",
    "2236": "A10",
    "2237": "A10G",
    "2321": "H100-NVL",
    "2322": "H800-PCIE",
    "2324": "H800",
    "2329": "H20",
    "232c": "H20-141GB",
    "2330": "H100-SXM5-80GB",
    "2331": "H100-PCIE-80GB",
    "2335": "H200",
    "2337": "H100-SXM5-64GB",
    "2338": "H100-SXM5-96GB",
    "2339": "H100-SXM5-94GB",
    "233a": "H800-NVL-94GB",
    "233b": "H200-NVL",
    "2342": "GH200-480GB",
    "2348": "GH200-144G-HBM3e",
    "24b0": "RTX-A4000",
    "25b6": "A16",  # also the A2; both have 16 GB
    "2684": "RTX-4090",
    "26b1": "RTX-6000-Ada",
    "26b2": "RTX-5000-Ada",
    "26b5": "L40",
    "26b9": "L40S",
    "26b7": "L20",
    "26ba": "L20",
    "27b6": "L2",
    "27b8": "L4",
    "2901": "B200",
    "2920": "B100",
    "2941": "GB200",
    "2b85": "RTX-5090",
    "2bb1": "RTX-PRO-6000-Blackwell-Workstation-Edition",
    "2bb4": "RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition",
    "2bb5": "RTX-PRO-6000-Blackwell-Server-Edition",
    "3182": "B300",
    "31c2": "GB300",
    "31c3": "GB300",
}
_AMD: Final = {
    "66a1": "MI60",
    "738c": "MI100",
    "7408": "MI250X",
    "740c": "MI250X",  # also the MI250
    "740f": "MI210",
    "74a0": "MI300A",
    "74a1": "MI300X",
    "74a2": "MI308X",
    "74a5": "MI325X",
    "74a9": "MI300X",
    "74b5": "MI300X",
    "75a0": "MI350X",
    "75a3": "MI355X",
}
_INTEL: Final = {
    "0bd5": "Max-1550",
    "0bd9": "Max-1100",
    "0bda": "Max-1100",
    "56c0": "Flex-170",
    "56c1": "Flex-140",
}
_HABANA: Final = {
    "1000": "Gaudi",
    "1010": "Gaudi",
    "1020": "Gaudi2",
    "1060": "Gaudi3",
}
MODEL_NAMES: Final[dict[str, dict[str, str]]] = {
    NVIDIA: _NVIDIA,
    AMD: _AMD,
    INTEL: _INTEL,
    HABANA: _HABANA,
    GOOGLE: {},
}
