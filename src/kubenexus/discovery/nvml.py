"""Reads GPUs from NVIDIA's driver, through its library NVML and ctypes. No package is needed for it.

The library comes with the driver. Without it there are no GPUs to report; a fact that the library does
not support stays unknown.
"""

import ctypes
import logging
import uuid
from collections.abc import Callable
from ctypes import byref, c_char, c_char_p, c_ubyte, c_uint, c_ulonglong, c_void_p
from typing import Any, ClassVar, Final

import msgspec

LIBRARY: Final = "libnvidia-ml.so.1"
LINK_TO_GPU, LINK_TO_SWITCH, LINK_UNKNOWN = 0, 2, 255
FABRIC_COMPLETED: Final = 3
_MAX_GPUS: Final = 64
_MAX_LINKS: Final = 18  # of a GPU in NVML
_log = logging.getLogger(__name__)


class NvLink(msgspec.Struct, frozen=True, gc=False):
    """A link that is up: the kind of device at its other end, and that device's PCI address."""

    to: int
    remote: str = ""


class NvmlGpu(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The answers about one GPU. `cluster` is the UUID of its NVLink fabric, valid in state `FABRIC_COMPLETED`."""

    index: int
    bus_id: str
    name: str = ""
    uuid: str = ""
    memory: int = 0
    mig: bool = False
    links: tuple[NvLink, ...] = ()
    cluster: str = ""
    clique: int = 0
    fabric_state: int = 0


class _Memory(ctypes.Structure):
    _fields_: ClassVar = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class _Pci(ctypes.Structure):
    _fields_: ClassVar = [
        ("bus_id_legacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pci_device_id", c_uint),
        ("pci_subsystem_id", c_uint),
        ("bus_id", c_char * 32),
    ]


class _Fabric(ctypes.Structure):
    _fields_: ClassVar = [("cluster", c_ubyte * 16), ("status", c_uint), ("clique", c_uint), ("state", c_ubyte)]


def ask_nvml(load: Callable[[str], Any] = ctypes.CDLL) -> tuple[NvmlGpu, ...] | None:
    """Returns the answers about all GPUs in the order of the driver, or None if there is no library or no driver."""
    try:
        library = load(LIBRARY)
    except OSError:
        return None
    nvml = _Nvml(library)
    if not nvml.ask("nvmlInit_v2"):
        _log.warning("%s is there, but its driver does not answer", LIBRARY)
        return None
    try:
        return nvml.gpus()
    finally:
        nvml.ask("nvmlShutdown")


class _Nvml:
    def __init__(self, library: Any) -> None:
        self._library = library

    def ask(self, function: str, *arguments: Any) -> bool:
        """Returns whether the library has the function and it succeeded."""
        try:
            call = getattr(self._library, function)
        except AttributeError:  # an older driver
            return False
        return bool(call(*arguments) == 0)

    def gpus(self) -> tuple[NvmlGpu, ...] | None:
        count = c_uint()
        if not self.ask("nvmlDeviceGetCount_v2", byref(count)):
            return None
        found = []
        for index in range(min(count.value, _MAX_GPUS)):
            handle = c_void_p()
            if self.ask("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle)):
                found.append(self._gpu(index, handle))
            else:
                _log.warning("GPU %d does not answer", index)
        return tuple(found)

    def _gpu(self, index: int, handle: c_void_p) -> NvmlGpu:
        memory, pci, fabric, mig, pending = _Memory(), _Pci(), _Fabric(), c_uint(), c_uint()
        self.ask("nvmlDeviceGetMemoryInfo", handle, byref(memory))
        self.ask("nvmlDeviceGetPciInfo_v3", handle, byref(pci))
        self.ask("nvmlDeviceGetGpuFabricInfo", handle, byref(fabric))
        self.ask("nvmlDeviceGetMigMode", handle, byref(mig), byref(pending))
        return NvmlGpu(
            index=index,
            bus_id=_text(pci.bus_id),
            name=self._text_of("nvmlDeviceGetName", handle),
            uuid=self._text_of("nvmlDeviceGetUUID", handle),
            memory=memory.total,
            mig=mig.value == 1,
            links=self._links(handle),
            cluster=str(uuid.UUID(bytes=bytes(fabric.cluster))),
            clique=fabric.clique,
            fabric_state=fabric.state if fabric.status == 0 else 0,
        )

    def _text_of(self, function: str, handle: c_void_p) -> str:
        text = ctypes.create_string_buffer(96)
        return _text(text.value) if self.ask(function, handle, ctypes.cast(text, c_char_p), c_uint(96)) else ""

    def _links(self, handle: c_void_p) -> tuple[NvLink, ...]:
        found = []
        for number in range(_MAX_LINKS):
            active, kind, remote = c_uint(), c_uint(LINK_UNKNOWN), _Pci()
            link = c_uint(number)
            if not self.ask("nvmlDeviceGetNvLinkState", handle, link, byref(active)) or not active.value:
                continue
            self.ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link, byref(remote))
            self.ask("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link, byref(kind))
            found.append(NvLink(kind.value, _text(remote.bus_id)))
        return tuple(found)


def _text(content: bytes) -> str:
    return content.decode("ascii", "replace").strip()
