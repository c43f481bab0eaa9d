"""A trace: the nodes of a cluster, and the jobs that arrive there."""

import msgspec

from kubenexus.api.core import Pod

WHOLE_GPU = 1000  # thousandths


class TraceNode(msgspec.Struct, frozen=True, gc=False):
    """A node: cpu in thousandths, memory in bytes, a number of GPUs of one model ("" if it has none)."""

    name: str
    cpu: int
    memory: int
    gpus: int = 0
    model: str = ""
    labels: dict[str, str] = {}


class JobShape(msgspec.Struct, frozen=True, gc=False):
    """What each pod of a job asks for: cpu in thousandths, memory in bytes, and `gpus` GPUs of one of `models`.

    `gpu_milli` is what it takes of each GPU in thousandths. No models: any GPU will do.
    """

    cpu: int = 0
    memory: int = 0
    gpus: int = 0
    gpu_milli: int = WHOLE_GPU
    models: tuple[str, ...] = ()
    priority: int = 0

    @property
    def milli(self) -> int:
        """The GPUs of one pod, in thousandths."""
        return self.gpus * self.gpu_milli

    @property
    def is_part(self) -> bool:
        """Whether it takes a part of one GPU."""
        return self.gpus == 1 and self.gpu_milli < WHOLE_GPU


class TraceJob(msgspec.Struct, frozen=True, gc=False):
    """A job: `pods` pods of one shape, placed together or not at all.

    It arrives at `at` and runs for `duration` seconds; None: it never ends. `declared` are the seconds that its pods
    declare. `objects` are its pods where these exist already; without, they are made from the shape.
    """

    name: str
    shape: JobShape
    at: float = 0.0
    duration: float | None = None
    pods: int = 1
    tenant: str = "default"
    objects: tuple[Pod, ...] = ()
    declared: float | None = None

    @property
    def milli(self) -> int:
        """The GPUs of all its pods, in thousandths."""
        return self.pods * self.shape.milli


class Trace(msgspec.Struct, frozen=True, gc=False):
    """Nodes and jobs, the latter in the order of their arrival."""

    name: str
    nodes: tuple[TraceNode, ...]
    jobs: tuple[TraceJob, ...]

    @property
    def capacity(self) -> int:
        """The GPUs of all nodes, in thousandths."""
        return sum(node.gpus for node in self.nodes) * WHOLE_GPU

    @property
    def has_departures(self) -> bool:
        return any(job.duration is not None for job in self.jobs)
