"""NVIDIA's library is asked through ctypes; a library without a function, a driver or a card leaves the fact out."""

import ctypes
from typing import Any

import pytest

from kubenexus.discovery.nvml import LIBRARY, LINK_TO_GPU, LINK_TO_SWITCH, LINK_UNKNOWN, NvLink, NvmlGpu, ask_nvml
from kubenexus.discovery.read_machine import pci_address, read_machine

CLUSTER = bytes(range(16))


class FakeLibrary:
    """Functions of NVML, which write through their pointers and return 0 for success."""

    def __init__(self, gpus: int = 2, missing: str = "", failing: str = "") -> None:
        self.count, self.missing, self.failing = gpus, missing, failing
        self.ended = False

    def __getattr__(self, name: str) -> Any:
        if name == self.missing or not hasattr(type(self), f"do_{name}"):
            raise AttributeError(name)
        return (lambda *_: 3) if name == self.failing else getattr(self, f"do_{name}")

    def do_nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def do_nvmlShutdown(self) -> int:  # noqa: N802
        self.ended = True
        return 0

    def do_nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = self.count
        return 0

    def do_nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:  # noqa: N802
        handle._obj.value = index.value + 100
        return 0

    def do_nvmlDeviceGetName(self, handle: Any, text: Any, size: Any) -> int:  # noqa: N802
        ctypes.memmove(text, b"NVIDIA H100 NVL\0", 16)
        return 0

    def do_nvmlDeviceGetUUID(self, handle: Any, text: Any, size: Any) -> int:  # noqa: N802
        ctypes.memmove(text, b"GPU-1\0", 6)
        return 0

    def do_nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:  # noqa: N802
        memory._obj.total = 100
        return 0

    def do_nvmlDeviceGetPciInfo_v3(self, handle: Any, pci: Any) -> int:  # noqa: N802
        pci._obj.bus_id = f"00000000:{handle.value - 100:02X}:00.0".encode()
        return 0

    def do_nvmlDeviceGetMigMode(self, handle: Any, now: Any, pending: Any) -> int:  # noqa: N802
        now._obj.value = 1 if handle.value == 101 else 0
        return 0

    def do_nvmlDeviceGetGpuFabricInfo(self, handle: Any, fabric: Any) -> int:  # noqa: N802
        fabric._obj.cluster[:] = CLUSTER
        fabric._obj.clique, fabric._obj.state = 7, 3
        return 0

    def do_nvmlDeviceGetNvLinkState(self, handle: Any, link: Any, active: Any) -> int:  # noqa: N802
        active._obj.value = link.value < 1
        return 0

    def do_nvmlDeviceGetNvLinkRemotePciInfo_v2(self, handle: Any, link: Any, pci: Any) -> int:  # noqa: N802
        pci._obj.bus_id = f"00000000:{101 - handle.value:02X}:00.0".encode()
        return 0

    def do_nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: Any, link: Any, kind: Any) -> int:  # noqa: N802
        kind._obj.value = LINK_TO_GPU
        return 0


def answer(number: int) -> NvmlGpu:
    return NvmlGpu(
        index=number,
        bus_id=f"00000000:0{number}:00.0",
        name="NVIDIA H100 NVL",
        uuid="GPU-1",
        memory=100,
        mig=number == 1,
        links=(NvLink(LINK_TO_GPU, f"00000000:0{1 - number}:00.0"),),
        cluster="00010203-0405-0607-0809-0a0b0c0d0e0f",
        clique=7,
        fabric_state=3,
    )


def test_all_that_the_library_answers_is_in_the_record() -> None:
    library = FakeLibrary()
    assert ask_nvml(lambda _: library) == (answer(0), answer(1))
    assert library.ended


@pytest.mark.parametrize(
    ("function", "field", "value"),
    [
        ("nvmlDeviceGetName", "name", ""),
        ("nvmlDeviceGetUUID", "uuid", ""),
        ("nvmlDeviceGetMemoryInfo", "memory", 0),
        ("nvmlDeviceGetMigMode", "mig", False),
        ("nvmlDeviceGetGpuFabricInfo", "fabric_state", 0),
        ("nvmlDeviceGetNvLinkState", "links", ()),
        ("nvmlDeviceGetNvLinkRemoteDeviceType", "links", (NvLink(LINK_UNKNOWN, "00000000:01:00.0"),)),
    ],
)
def test_a_function_that_is_missing_or_fails_leaves_its_fact_unknown(function: str, field: str, value: object) -> None:
    for library in (FakeLibrary(missing=function), FakeLibrary(failing=function)):
        found = ask_nvml(dict.fromkeys([LIBRARY], library).__getitem__)
        assert found is not None
        assert getattr(found[0], field) == value


def test_without_a_library_or_a_driver_there_is_no_answer() -> None:
    def absent(name: str) -> Any:
        raise OSError(f"{name}: cannot open shared object file")

    assert ask_nvml(absent) is None
    assert ask_nvml(lambda _: FakeLibrary(failing="nvmlInit_v2")) is None
    assert ask_nvml(lambda _: FakeLibrary(failing="nvmlDeviceGetCount_v2")) is None


def test_a_card_that_does_not_answer_is_left_out_and_more_than_64_are_not_asked() -> None:
    assert ask_nvml(lambda _: FakeLibrary(failing="nvmlDeviceGetHandleByIndex_v2")) == ()
    found = ask_nvml(lambda _: FakeLibrary(gpus=1000))
    assert found is not None
    assert len(found) == 64


@pytest.mark.parametrize(
    ("bus_id", "address"),
    [
        ("00000000:1B:00.0", "0000:1b:00.0"),
        ("00010008:01:00.0", "00010008:01:00.0"),
        ("0000:1b:00.0", "0000:1b:00.0"),
        ("", ""),
        ("../../etc", ""),
    ],
)
def test_an_address_is_written_as_in_sysfs(bus_id: str, address: str) -> None:
    assert pci_address(bus_id) == address


def test_the_other_end_of_a_link_tells_what_it_is_where_the_driver_does_not(tmp_path: Any) -> None:
    def gpu(index: int, remote: str) -> NvmlGpu:
        return NvmlGpu(index=index, bus_id=f"00000000:0{index}:00.0", links=(NvLink(LINK_UNKNOWN, remote),))

    direct = read_machine(tmp_path, (gpu(0, "00000000:01:00.0"), gpu(1, "00000000:00:00.0")))
    assert [(each.peers, each.switched) for each in direct.gpus] == [
        (("0000:01:00.0",), False),
        (("0000:00:00.0",), False),
    ]
    switched = read_machine(tmp_path, (gpu(0, "00000000:0A:00.0"), gpu(1, "")))
    assert [(each.peers, each.switched) for each in switched.gpus] == [((), True), ((), False)]
    assert LINK_TO_SWITCH != LINK_TO_GPU
