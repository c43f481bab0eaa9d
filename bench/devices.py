"""The benches of GPUs: pods and gangs that get cards by name, beside the same pods counted as plain numbers.

The yardstick of these rows is the same bench with kube-scheduler's plugins alone, in the same run: `ratio` is what it
costs to know each card. Nodes have eight GPUs, described by the labels of GPU Feature Discovery.
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bench.cluster import decide_and_commit
from bench.measure import Memory, Round
from kubenexus.api.core import Node, Pod
from kubenexus.api.keys import gpu
from kubenexus.framework.job import Job
from kubenexus.framework.profile import EnabledPlugin, Profile
from kubenexus.plan.decide import Planner
from kubenexus.plugins import OWN_ORDER, default_profile, profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

MEMORY = "devices.memory"
GPUS = 8
DRAIN = 400  # pods that are placed before they are all taken back
MEMBERS = 1000
_LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": str(GPUS),
}
_PLUGINS = ("DeviceFit", "VRAMScheduler", "GPUTopology", "ResourceFragmentationScore")
_numbers = itertools.count()


def device_profile() -> Profile:
    """kube-scheduler's plugins and those about devices."""
    return default_profile(also=[EnabledPlugin(p.name, weight) for p, weight in OWN_ORDER if p.name in _PLUGINS])


class Kind(NamedTuple):
    """What a pod asks for: GPUs by number, or with `fraction` a part of one. As a plain number that is one GPU."""

    gpus: int = 1
    fraction: str = ""


KINDS = {"1 GPU": Kind(1), "4 GPUs": Kind(4), "8 GPUs": Kind(8), "0.5 GPU": Kind(1, "0.5")}


def gpu_node(number: int, kind: Kind) -> Node:
    # As a plain number a half is a whole unit, of which each node then offers twice as many.
    made = a_node(f"gpu-{number}", cpu=128, memory="1Ti", gpu=GPUS * 2 if kind.fraction else GPUS)
    shared = {gpu.SHARED.key: "true"} if kind.fraction else {}
    labels = {**made.metadata.labels, **_LABELS, **shared}
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, labels=labels))


@functools.lru_cache(maxsize=4)
def _template(kind: Kind, cpu: int, named: bool) -> Pod:
    made = a_pod("template", cpu=f"{cpu}m", memory="1Gi", gpu=None if kind.fraction and named else kind.gpus or None)
    if not kind.fraction or not named:
        return made
    annotations = {gpu.FRACTION.key: kind.fraction}
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations=annotations))


def gpu_pod(kind: Kind, *, cpu: int, named: bool) -> Pod:
    """`cpu` in milli tells classes apart. `named`: a part is asked for as such, not as a number. Pods of one template
    share their spec, as the event handlers have them share it."""
    return _member(_template(kind, cpu, named))


class Deciding:
    """Pods of one kind on one cluster, with one planner. `cold`: each is a class of its own."""

    def __init__(self, nodes: int, kind: Kind, profile: Profile, calls: int, *, cold: bool) -> None:
        self._named = len(profile.plugins) > len(default_profile().plugins)
        self._ledger = a_ledger([gpu_node(i, kind) for i in range(nodes)])
        self._planner = Planner(profile_plugins(profile))
        self._kind, self._calls, self._cold = kind, min(calls, nodes * GPUS // kind.gpus // 2), cold
        self._most = min(DRAIN, nodes * GPUS // kind.gpus - self._calls)
        self._classes = itertools.count(100)
        self._placed: list[str] = []

    def round(self) -> float:
        spent = 0.0
        for _ in range(self._calls):
            cpu = next(self._classes) if self._cold else 100
            job = Job.of(gpu_pod(self._kind, cpu=cpu, named=self._named))
            spent += decide_and_commit(self._planner, job, self._ledger)
            self._placed.append(job.pods[0].key)
        if len(self._placed) >= self._most:
            for key in self._placed:
                self._ledger.forget(key)
            self._placed.clear()
        return spent / self._calls


class Gang:
    """Gangs of a thousand pods with a GPU each; committed and taken back between two plans."""

    def __init__(self, nodes: int, profile: Profile) -> None:
        self._ledger: Ledger = a_ledger([gpu_node(i, KINDS["1 GPU"]) for i in range(nodes)])
        self._planner = Planner(profile_plugins(profile))
        self._members = min(MEMBERS, nodes * GPUS // 2)

    def round(self) -> float:
        template = gpu_pod(KINDS["1 GPU"], cpu=100, named=True)
        pods = tuple(_member(template) for _ in range(self._members))
        job = Job(f"default/gang/{next(_numbers)}", pods, self._members)
        spent = decide_and_commit(self._planner, job, self._ledger)
        for pod in pods:
            self._ledger.forget(pod.key)
        return spent


def _member(template: Pod) -> Pod:
    number = next(_numbers)
    meta = msgspec.structs.replace(template.metadata, name=f"m-{number}", uid=f"uid-{number}")
    return msgspec.structs.replace(template, metadata=meta)


def pairs(nodes: int) -> dict[tuple[str, str], Callable[[], tuple[Round, Round]]]:
    """By bench and case: makes the round with devices and the one with plain numbers."""

    def deciding(kind: Kind, calls: int, *, cold: bool) -> Callable[[], tuple[Round, Round]]:
        return lambda: (
            Deciding(nodes, kind, device_profile(), calls, cold=cold).round,
            Deciding(nodes, kind, default_profile(), calls, cold=cold).round,
        )

    made: dict[tuple[str, str], Callable[[], tuple[Round, Round]]] = {}
    for case, kind in KINDS.items():
        made["devices.warm", case] = deciding(kind, 40, cold=False)
        made["devices.cold", case] = deciding(kind, 8, cold=True)
    made["devices.gang", f"{MEMBERS} x 1 GPU"] = lambda: (
        Gang(nodes, device_profile()).round,
        Gang(nodes, default_profile()).round,
    )
    return made


def memory(nodes: int) -> Memory:
    """What the devices of so many nodes take, besides the nodes themselves."""
    import tracemalloc

    plain = [a_node(f"gpu-{i}", cpu=128, memory="1Ti") for i in range(nodes)]
    with_gpus = [gpu_node(i, KINDS["1 GPU"]) for i in range(nodes)]
    taken = []
    for made in (plain, with_gpus):
        tracemalloc.start()
        ledger = a_ledger(made)
        ledger.snapshot()
        taken.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        del ledger
    return Memory(MEMORY, f"{nodes} nodes with {GPUS} GPUs", nodes, mb=round((taken[1] - taken[0]) / 1e6, 1))
