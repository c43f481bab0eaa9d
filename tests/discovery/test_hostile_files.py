"""Files that are malformed, huge, endless or elsewhere are skipped with a warning; the rest of the machine is read."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.devices.draft import MAX_WARNINGS
from kubenexus.discovery.host_files import MAX_BYTES, natural
from kubenexus.discovery.machine import Machine
from kubenexus.discovery.node_patch import node_patch
from kubenexus.discovery.read_machine import read_machine
from kubenexus.discovery.topology_object import topology_object
from tests.discovery.machine_trees import description, make_tree, nvml_answers

NODES = "sys/devices/system/node"
CARD = "sys/bus/pci/devices/0000:1b:00.0"


def h100(root: Path) -> Path:
    return make_tree(root, description("dgx-h100"))


def read(root: Path) -> Machine:
    return read_machine(root, nvml_answers(description("dgx-h100")))


def replaced(path: str, content: bytes) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / path).write_bytes(content)

    return change


def linked(path: str, target: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / path).unlink()
        (root / path).symlink_to(target)

    return change


def piped(path: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / path).unlink()
        os.mkfifo(root / path)

    return change


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        pytest.param(replaced(f"{NODES}/node1/cpulist", b"0-99999"), "must rise and end at 8191", id="a huge range"),
        pytest.param(replaced(f"{NODES}/node1/cpulist", b"a,b"), "must be CPU ids", id="no CPU list"),
        pytest.param(replaced(f"{NODES}/node1/cpulist", b"\xff\xfe"), "is no text", id="no text"),
        pytest.param(replaced(f"{NODES}/node1/cpulist", b"1," * MAX_BYTES), "more than 65536 bytes", id="a huge file"),
        pytest.param(linked(f"{NODES}/node1/cpulist", "cpulist"), "symbolic links", id="a loop of links"),
        pytest.param(linked(f"{NODES}/node1/cpulist", "/etc/hostname"), "leads out of the root", id="a link outside"),
        pytest.param(piped(f"{NODES}/node1/cpulist"), "is no file", id="a pipe without a writer"),
    ],
)
def test_a_numa_node_whose_cpus_cannot_be_read_is_left_out(
    tmp_path: Path, change: Callable[[Path], None], warning: str
) -> None:
    change(h100(tmp_path))
    machine = read(tmp_path)
    assert [node.id for node in machine.numa_nodes] == [0]
    assert [each for each in machine.warnings if "node1/cpulist" in each and warning in each]
    assert len(machine.gpus) == 8


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (f"{NODES}/node0/distance", b"10"),
        (f"{NODES}/node0/distance", b"10 x"),
        (f"{NODES}/node0/meminfo", b"Node 0 MemTotal: lots"),
        (f"{CARD}/class", b"0xfffffffffffffffffff"),
        (f"{CARD}/vendor", b"nvidia"),
        (f"{CARD}/numa_node", b"70000"),
        ("sys/class/infiniband/mlx5_0/ports/1/rate", b"fast"),
        ("sys/devices/system/cpu/cpu0/topology/core_cpus_list", b"0-9000"),
    ],
)
def test_a_malformed_value_is_a_warning_and_the_others_count(tmp_path: Path, path: str, content: bytes) -> None:
    (h100(tmp_path) / path).write_bytes(content)
    machine = read(tmp_path)
    assert machine.warnings
    assert (len(machine.numa_nodes), len(machine.gpus)) == (2, 8)


def test_a_card_without_a_numa_node_has_that_of_its_bridge_or_of_its_cpus(tmp_path: Path) -> None:
    root = h100(tmp_path)
    (root / CARD / "numa_node").write_text("-1")
    assert read(root).gpus[0].numa == 0
    for bridge in ("0000:17:00.0", "0000:16:00.0", "0000:15:01.0"):
        (root / "sys/bus/pci/devices" / bridge / "numa_node").write_text("-1")
    assert read(root).gpus[0].numa == -1
    (root / CARD / "local_cpulist").write_text("56-111,168-223")
    assert read(root).gpus[0].numa == 1


def test_cards_of_virtual_machines_and_virtual_functions_are_not_counted(tmp_path: Path) -> None:
    root = h100(tmp_path)
    driver = root / "sys/bus/pci/drivers/vfio-pci"
    driver.mkdir(parents=True)
    (root / CARD / "driver").symlink_to(driver)
    (root / "sys/bus/pci/devices/0000:43:00.0/physfn").symlink_to(root / "sys/bus/pci/devices/0000:52:00.0")
    assert [gpu.address for gpu in read_machine(root).gpus] == [
        f"0000:{bus}:00.0" for bus in ("52", "61", "9d", "c3", "d1", "df")
    ]


def test_three_hundred_bad_files_give_a_bounded_number_of_warnings(tmp_path: Path) -> None:
    folder = h100(tmp_path) / "sys/class/infiniband"
    for number in range(300):
        ports = folder / f"bad{number}" / "ports" / "1"
        ports.mkdir(parents=True)
        (ports / "state").write_text("4: ACTIVE")
    machine = read(tmp_path)
    assert len(machine.warnings) == MAX_WARNINGS + 1


def test_an_empty_root_is_an_empty_machine(tmp_path: Path) -> None:
    machine = read_machine(tmp_path)
    assert machine == Machine()
    assert (node_patch(machine).labels, node_patch(machine).annotations) == ({}, {})
    assert topology_object(machine, "n") is None


@given(st.dictionaries(st.sampled_from(["cpulist", "meminfo", "distance"]), st.binary(max_size=40)))
def test_any_bytes_in_the_files_of_a_numa_node_end_in_labels_or_warnings(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes]
) -> None:
    root = tmp_path_factory.mktemp("machine")
    folder = root / NODES / "node0"
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    patch = node_patch(read_machine(root))
    assert set(patch.labels) <= {"numa.kubenexus.io/node-count"}


def test_numbers_in_names_are_sorted_by_value() -> None:
    names = ["node10", "node2", "a", "node", "10", "9", "0000:9d:00.0", "0000:1b:00.0"]
    assert sorted(names, key=natural)[:2] == ["0000:1b:00.0", "0000:9d:00.0"]
    assert [name for name in sorted(names, key=natural) if name.startswith("node")] == ["node", "node2", "node10"]
