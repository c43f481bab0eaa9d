"""Extended resources by which kubelets offer devices."""

import re
from typing import Final

import msgspec

from kubenexus.api.devices.device import DeviceKind
from kubenexus.api.devices.models import AMD, AWS, GOOGLE, HABANA, INTEL, NVIDIA, PROFILE

NVIDIA_GPU: Final = "nvidia.com/gpu"
_MIG_PREFIX: Final = "nvidia.com/mig-"
_MIG: Final = re.compile(rf"{re.escape(_MIG_PREFIX)}({PROFILE})")
_SHARED: Final = ".shared"  # the suffix that time slicing can give a resource
_MAX_LENGTH: Final = 128


class DeviceResource(msgspec.Struct, frozen=True, gc=False):
    """A resource and what it offers. Resources with the same `cards` offer the same cards: the first is meant that
    the node has any of."""

    name: str
    vendor: str
    kind: DeviceKind = DeviceKind.GPU
    cards: str = ""
    profile: str = ""


_KNOWN: Final = {
    each.name: each
    for each in (
        DeviceResource(NVIDIA_GPU, NVIDIA, cards=NVIDIA),
        DeviceResource(NVIDIA_GPU + _SHARED, NVIDIA, cards=NVIDIA),
        DeviceResource("amd.com/gpu", AMD, cards=AMD),
        DeviceResource("gpu.intel.com/xe", INTEL, cards="xe"),
        DeviceResource("gpu.intel.com/i915", INTEL, cards="i915"),
        DeviceResource("intel.com/gpu", INTEL, cards=INTEL),
        DeviceResource("habana.ai/gaudi", HABANA, DeviceKind.ACCELERATOR, HABANA),
        DeviceResource("aws.amazon.com/neuron", AWS, DeviceKind.ACCELERATOR, AWS),
        DeviceResource("aws.amazon.com/neurondevice", AWS, DeviceKind.ACCELERATOR, AWS),
        DeviceResource("aws.amazon.com/neuroncore", AWS, DeviceKind.ACCELERATOR, AWS),
        DeviceResource("google.com/tpu", GOOGLE, DeviceKind.ACCELERATOR, GOOGLE),
    )
}
_ORDER: Final = {name: place for place, name in enumerate(_KNOWN)}


def is_device_resource(name: str) -> bool:
    """Returns whether a resource may offer devices; cheap, for all resources of all nodes."""
    return name in _KNOWN or name.startswith(_MIG_PREFIX)


def find_resource(name: str) -> DeviceResource | None:
    """Returns what a resource offers, or None if that is no device."""
    known = _KNOWN.get(name)
    if known is not None or len(name) > _MAX_LENGTH:
        return known
    match = _MIG.fullmatch(name.removesuffix(_SHARED))
    return DeviceResource(name, NVIDIA, DeviceKind.MIG, f"mig-{match[1]}", match[1]) if match else None


def resource_order(resource: DeviceResource) -> tuple[int, str]:
    """Returns a key that sorts resources as in the table, MIG devices last."""
    return _ORDER.get(resource.name, len(_ORDER)), resource.name
