"""What the name of a model implies: vendor, memory, and what joins such cards in one machine.

Names come as GPU Feature Discovery publishes them (`NVIDIA-A100-SXM4-80GB`), with blanks from DRA drivers, and short as
people write them (`A100-80GB`). Without the brand, a family matches from the beginning of the name to a hyphen, never
inside a word: RTX-A4000 is no A40. A size in the name goes before that of the family.
"""

import functools
import re
from typing import Final

import msgspec

from kubenexus.api.devices.device import UNKNOWN, DeviceKind, Link

NVIDIA, AMD, INTEL, HABANA, AWS, GOOGLE = "nvidia", "amd", "intel", "habana", "aws", "google"

MAX_NAME: Final = 128  # characters; a longer text is no name of a model
_GIB: Final = 2**30
_GBYTE_PER_SECOND: Final = 8 * 10**9  # in bits a second


class Model(msgspec.Struct, frozen=True, gc=False):
    """A model. `memory` is the nominal size in bytes. `link` is what joins such cards of one machine in any machine
    that they are sold in; `bandwidth` is that of all links of a card in bits a second."""

    family: str
    vendor: str
    kind: DeviceKind = DeviceKind.GPU
    memory: int = UNKNOWN
    link: Link = Link.UNKNOWN
    bandwidth: int = UNKNOWN


class _Family(msgspec.Struct, frozen=True, gc=False):
    """A row of the table. `form` must be in the name for `link` to hold; "" if all cards of the family have it."""

    name: str
    pattern: str
    memory: int = 0  # GiB; of several sizes the smallest. 0: not implied
    link: Link = Link.UNKNOWN
    speed: int = 0  # GB/s
    form: str = ""
    sized: bool = True  # whether a size in the name is that of the card
    kind: DeviceKind = DeviceKind.GPU


_SXM: Final = r"(?:SXM[0-9]?|HGX|DGX|DGXS)"
# The H100 for SXM5 is published without its form: only that card has this memory.
_SXM5: Final = r"(?:SXM[0-9]?|HGX|DGX|HBM3)"
_RTX: Final = r"(?:RTX-?)"

_NVIDIA: Final = (
    _Family("GB300", "GB300", 288, Link.NVSWITCH, 1800),
    _Family("GB200", "GB200", 186, Link.NVSWITCH, 1800),
    _Family("B300", "B300", 288, Link.NVSWITCH, 1800),
    _Family("B200", "B200", 180, Link.NVSWITCH, 1800),
    _Family("B100", "B100", 192, Link.NVSWITCH, 1800),
    # One card beside one CPU. The 480GB or 120GB in the name are the memory of the CPU.
    _Family("GH200", "GH200-144GB?", 144),
    _Family("GH200", "GH200", 96, sized=False),
    _Family("H200", "H200-NVL", 141),
    _Family("H200", "H200", 141, Link.NVSWITCH, 900),
    _Family("H100", "H100-NVL", 94),
    _Family("H100", "H100L", 94),
    _Family("H100", "H100-PCIE", 80),
    _Family("H100", "H100", 80, Link.NVSWITCH, 900, _SXM5),
    _Family("H800", "H800-(?:PCIE|NVL)", 80),
    _Family("H800", "H800L", 94),
    _Family("H800", "H800", 80, Link.NVSWITCH, 400),
    _Family("H20", "H20", 96, Link.NVSWITCH, 900),
    _Family("A100X", "A100X", 80),
    _Family("A100", "A100", 40, Link.NVSWITCH, 600, _SXM),
    _Family("A800", "A800", 40, Link.NVSWITCH, 400, _SXM),
    _Family("A30X", "A30X", 24),
    _Family("A30", "A30", 24),
    _Family("A40", "A40", 48),
    _Family("A10G", "A10G", 24),
    _Family("A10", "A10", 24),
    _Family("A16", "A16", 16),
    _Family("A2", "A2", 16),
    _Family("L40S", "L40S", 48),
    _Family("L40", "L40G?", 48),
    _Family("L20", "L20", 48),
    _Family("L4", "L4", 24),
    _Family("L2", "L2", 24),
    _Family("T4", "T4G?", 16),
    # Volta has a switch only in the DGX-2 (SXM3); SXM2 boards join the cards directly.
    _Family("V100", "V100-SXM3", 32, Link.NVSWITCH, 300),
    _Family("V100S", "V100S", 32),
    _Family("V100", "V100", 16, Link.NVLINK, 300, _SXM),
    _Family("P100", "P100", 16, Link.NVLINK, 160, _SXM),
    _Family("P40", "P40", 24),
    _Family("P4", "P4", 8),
    _Family("M60", "M60", 8),
    _Family("K80", "K80", 12),
    _Family("RTX-PRO-6000", _RTX + "PRO-?6000", 96),
    _Family("RTX-PRO-5000", _RTX + "PRO-?5000", 48),
    _Family("RTX-PRO-4500", _RTX + "PRO-?4500", 32),
    _Family("RTX-PRO-4000", _RTX + "PRO-?4000", 24),
    _Family("RTX-6000-Ada", _RTX + "?6000-?ADA", 48),
    _Family("RTX-5880-Ada", _RTX + "?5880-?ADA", 48),
    _Family("RTX-5000-Ada", _RTX + "?5000-?ADA", 32),
    _Family("RTX-4500-Ada", _RTX + "?4500-?ADA", 24),
    _Family("RTX-4000-Ada", _RTX + "?4000-?(?:SFF-?)?ADA", 20),
    _Family("RTX-A6000", _RTX + "?A6000", 48),
    _Family("RTX-A5500", _RTX + "?A5500", 24),
    _Family("RTX-A5000", _RTX + "?A5000", 24),
    _Family("RTX-A4500", _RTX + "?A4500", 20),
    _Family("RTX-A4000", _RTX + "?A4000", 16),
    _Family("RTX-A2000", _RTX + "?A2000", 6),
    _Family("RTX-8000", _RTX + "8000", 48),
    _Family("RTX-6000", _RTX + "6000", 24),
    _Family("RTX-5000", _RTX + "5000", 16),
    _Family("RTX-4000", _RTX + "4000", 8),
    _Family("RTX-5090", _RTX + "5090", 32),
    _Family("RTX-5080", _RTX + "5080", 16),
    _Family("RTX-4090", _RTX + "4090", 24),
    _Family("RTX-4080", _RTX + "4080", 16),
    _Family("RTX-3090", _RTX + "3090(?:-?TI)?", 24),
    _Family("RTX-3080-Ti", _RTX + "3080-?TI", 12),
    _Family("RTX-3080", _RTX + "3080", 10),
    _Family("RTX-2080-Ti", _RTX + "2080-?TI", 11),
    _Family("RTX-2080", _RTX + "2080", 8),
)
# The AMD device plugin offers each of the two dies of an MI250 by itself.
_AMD: Final = (
    _Family("MI355X", "MI355X", 288, Link.XGMI, 1075),
    _Family("MI350X", "MI350X", 288, Link.XGMI, 1075),
    _Family("MI325X", "MI325X?", 256, Link.XGMI, 896),
    _Family("MI308X", "MI308X", 192, Link.XGMI, 896),
    _Family("MI300A", "MI300A", 128, Link.XGMI),
    _Family("MI300X", "MI300X?", 192, Link.XGMI, 896),
    _Family("MI250X", "MI250X", 64, Link.XGMI, 800),
    _Family("MI250", "MI250", 64, Link.XGMI),
    _Family("MI210", "MI210", 64),
    _Family("MI100", "MI100", 32),
    _Family("MI60", "MI60", 32),
    _Family("MI50", "MI50", 16),
)
_INTEL: Final = (
    _Family("Max-1550", "MAX-1550", 128),
    _Family("Max-1100", "MAX-1100", 48),
    _Family("Flex-170", "FLEX-170", 16),
    _Family("Flex-140", "FLEX-140", 6),  # each of its two GPUs
)
_HABANA: Final = (
    _Family("Gaudi3", "(?:GAUDI-?3|HL-?3[0-9]{2}[A-Z]?)", 128, kind=DeviceKind.ACCELERATOR),
    _Family("Gaudi2", "(?:GAUDI-?2[A-Z]?|HL-?2[2-9][0-9][A-Z]?)", 96, kind=DeviceKind.ACCELERATOR),
    _Family("Gaudi", "(?:GAUDI-?1?|HL-?20[0-9])", 32, kind=DeviceKind.ACCELERATOR),
)
_AWS: Final = (
    _Family("Trainium2", "TRAINIUM-?2", 96, kind=DeviceKind.ACCELERATOR),
    _Family("Trainium", "TRAINIUM-?1?", 32, kind=DeviceKind.ACCELERATOR),
    _Family("Inferentia2", "INFERENTIA-?2", 32, kind=DeviceKind.ACCELERATOR),
    _Family("Inferentia", "INFERENTIA-?1?", 8, kind=DeviceKind.ACCELERATOR),
)
_GOOGLE: Final = (
    _Family("TPU-v6e", "TPU-?V6E", 32, kind=DeviceKind.ACCELERATOR),
    _Family("TPU-v5p", "TPU-?V5P", 95, kind=DeviceKind.ACCELERATOR),
    _Family("TPU-v5e", "TPU-?V5E", 16, kind=DeviceKind.ACCELERATOR),
    _Family("TPU-v4", "TPU-?V4", 32, kind=DeviceKind.ACCELERATOR),
)
_FAMILIES: Final = tuple(
    (re.compile(rf"{family.pattern}(?=-|$)"), re.compile(rf"(?<![A-Z0-9]){family.form}(?=-|$)"), vendor, family)
    for vendor, table in (
        (NVIDIA, _NVIDIA),
        (AMD, _AMD),
        (INTEL, _INTEL),
        (HABANA, _HABANA),
        (AWS, _AWS),
        (GOOGLE, _GOOGLE),
    )
    for family in table
)

_BRANDS: Final = re.compile(
    r"(?:(?:NVIDIA|TESLA|QUADRO|GEFORCE|GRID|AMD|INSTINCT|RADEON|INTEL(?:\(R\))?|DATA-CENTER-GPU|HABANA(?:-LABS)?"
    r"|AWS|GOOGLE|CLOUD|HGX|DGX)-)*+"
)
_SIZE: Final = re.compile(r"(?<![A-Z0-9])([0-9]{1,3})GI?B(?=-|$)")
_SEPARATORS: Final = re.compile(r"[\s_/-]+")

PROFILE: Final = r"(?:[1-7]c\.)?[1-9]g\.([1-9][0-9]{0,3})gb(?:[.+-][a-z]{1,8}){0,3}"
_PROFILE: Final = re.compile(PROFILE)
_WITH_PROFILE: Final = re.compile(rf"(.{{1,128}}?)-MIG-({PROFILE})")
_SHARED: Final = "-SHARED"  # the suffix of the product's name under time slicing


def find_model(name: str) -> Model | None:
    """Returns the model that a name means, or None if its family is not in the table."""
    return _find(name) if len(name) <= MAX_NAME else None


@functools.lru_cache(maxsize=256)
def _find(name: str) -> Model | None:
    full = _SEPARATORS.sub("-", name.strip().upper()).removesuffix(_SHARED)
    start = _BRANDS.match(full)
    short = full[start.end() :] if start else full
    for pattern, form, vendor, family in _FAMILIES:
        if pattern.match(short):
            joined = family.link is not Link.UNKNOWN and (not family.form or form.search(full) is not None)
            size = _SIZE.search(short) if family.sized else None
            gib = int(size[1]) if size else family.memory
            return Model(
                family.name,
                vendor,
                family.kind,
                gib * _GIB if gib else UNKNOWN,
                family.link if joined else Link.UNKNOWN,
                family.speed * _GBYTE_PER_SECOND if joined and family.speed else UNKNOWN,
            )
    return None


def split_product(product: str) -> tuple[str, str]:
    """Returns a product's name without the suffixes of sharing and MIG, and the MIG profile, "" if it has none."""
    base = product.removesuffix(_SHARED)
    match = _WITH_PROFILE.fullmatch(base) if len(base) <= MAX_NAME else None
    return (match[1], match[2]) if match else (base, "")


def cluster_clique(text: str) -> str:
    """Returns the NVLink domain among nodes (`<cluster UUID>.<clique>`), or "" if the text is none. A UUID of zeros is
    that of all machines whose links do not leave them."""
    cluster, dot, _ = text.partition(".")
    return text if dot and cluster.strip("0-") else ""


def profile_memory(profile: str) -> int:
    """Returns the nominal memory of a MIG profile in bytes (`1g.10gb` is 10 GiB), or `UNKNOWN`."""
    match = _PROFILE.fullmatch(profile) if len(profile) <= MAX_NAME else None
    return int(match[1]) * _GIB if match else UNKNOWN
