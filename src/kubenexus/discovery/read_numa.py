"""Reads NUMA nodes and the threads of a core from sysfs."""

import re
from typing import Final

from kubenexus.discovery.host_files import HostFiles
from kubenexus.discovery.machine import NumaNode

NODES: Final = "sys/devices/system/node"
MAX_NODES: Final = 1024
_NODE: Final = re.compile(r"node(0|[1-9][0-9]{0,3})")
_TOTAL: Final = re.compile(r"MemTotal: +([0-9]{1,15}) kB")
_HUGE: Final = re.compile(r"hugepages-([0-9]{1,9})kB")
_MAX_PAGES: Final = 1 << 32
_UNITS: Final = ((1 << 20, "Gi"), (1 << 10, "Mi"), (1, "Ki"))  # in KiB


def read_numa(files: HostFiles) -> tuple[NumaNode, ...]:
    """Returns the NUMA nodes that have CPUs: a pod cannot run on those that are memory alone, of GPUs or CXL."""
    names = [match for name in files.names(NODES) if (match := _NODE.fullmatch(name))]
    if len(names) > MAX_NODES:
        files.warnings.add(f"{NODES}: {len(names)} NUMA nodes; the first {MAX_NODES} count")
    ids = [int(match[1]) for match in names[:MAX_NODES] if int(match[1]) < MAX_NODES]
    cpus = {number: files.cpus(f"{NODES}/node{number}/cpulist") for number in ids}
    with_cpus = frozenset(number for number in ids if cpus[number])
    # The distances of a node are in the order of the nodes that are online.
    online = [number for number in files.cpus(f"{NODES}/online") if number < MAX_NODES] or ids
    return tuple(
        NumaNode(
            number,
            cpus[number],
            _memory(files, number),
            _huge_pages(files, number),
            _distances(files, number, online, with_cpus),
        )
        for number in sorted(with_cpus)
    )


def _memory(files: HostFiles, number: int) -> int:
    path = f"{NODES}/node{number}/meminfo"
    text = files.text(path)
    found = _TOTAL.search(text or "")
    if text is not None and found is None:
        files.warnings.add(f"{path}: has no MemTotal")
    return int(found[1]) * 1024 if found else 0


def _huge_pages(files: HostFiles, number: int) -> dict[str, int]:
    """Returns the bytes of huge pages by the resource that offers them; none of sizes that have no pages."""
    found: dict[str, int] = {}
    folder = f"{NODES}/node{number}/hugepages"
    for name in files.names(folder)[:16]:
        size = _HUGE.fullmatch(name)
        pages = files.number(f"{folder}/{name}/nr_hugepages", 0, _MAX_PAGES) if size else None
        if size and pages:
            kibibytes = int(size[1])
            unit, suffix = next(each for each in _UNITS if kibibytes % each[0] == 0)
            found[f"hugepages-{kibibytes // unit}{suffix}"] = pages * kibibytes * 1024
    return found


def _distances(files: HostFiles, number: int, online: list[int], wanted: frozenset[int]) -> dict[int, int]:
    path = f"{NODES}/node{number}/distance"
    text = files.text(path)
    if text is None:
        return {}
    values = text.split()
    if len(values) != len(online) or not all(re.fullmatch("[0-9]{1,3}", each) for each in values):
        files.warnings.add(f"{path}: must be {len(online)} distances")
        return {}
    found = {other: int(value) for other, value in zip(online, values, strict=True) if other in wanted}
    return {other: value for other, value in found.items() if 0 < value < 256}


def read_threads(files: HostFiles, numa_nodes: tuple[NumaNode, ...]) -> int:
    """Returns how many CPUs a core has, from the first CPU of each NUMA node; 0 if they differ or do not tell."""
    counts = set[int]()
    for node in numa_nodes:
        folder = f"sys/devices/system/cpu/cpu{node.cpus[0]}/topology"
        siblings = files.cpus(f"{folder}/core_cpus_list") or files.cpus(f"{folder}/thread_siblings_list")
        counts.add(len(siblings))
    return counts.pop() if len(counts) == 1 and max(counts) <= 8 else 0
