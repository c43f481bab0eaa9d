"""Nodes and jobs of a trace as the objects that the scheduler reads."""

from kubenexus.api.core import (
    Affinity,
    Container,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeStatus,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from kubenexus.api.gangs.job_key import gang_key
from kubenexus.api.keys import gpu, network, workload
from kubenexus.api.meta import ObjectMeta, OwnerReference
from kubenexus.framework.job import Job
from kubenexus.sim.replay.traces.trace import WHOLE_GPU, JobShape, TraceJob, TraceNode

GPU_RESOURCE = "nvidia.com/gpu"
MAX_PODS = 1000  # of a node: traces do not limit them
MODEL_LABEL = gpu.MODEL.key
SIZE_LABEL = "gpus"  # on pods: the number of their GPUs, or PART
PART = "part"
# The owner of pods that end by themselves: the shipped profile packs them, and spreads pods without an owner.
_BATCH_JOB = OwnerReference(kind="Job", name="job", api_version="batch/v1", controller=True)


def node_object(node: TraceNode, *, shared: bool) -> Node:
    """Returns the node. `shared`: pods may take parts of its GPUs."""
    labels = {network.HOSTNAME.key: node.name, **node.labels}
    if node.model:
        labels[MODEL_LABEL] = node.model
    if node.gpus and shared:
        labels[gpu.SHARED.key] = "true"
    offered: dict[str, str | int | float] = {"cpu": f"{node.cpu}m", "memory": node.memory, "pods": MAX_PODS}
    if node.gpus:
        offered[GPU_RESOURCE] = node.gpus
    status = NodeStatus(allocatable=dict(offered), capacity=dict(offered))
    return Node(metadata=ObjectMeta(name=node.name, uid=node.name, labels=labels), status=status)


class JobObjects:
    """Makes the jobs of a trace. Pods of equal shape have one spec object, as those of a template do."""

    def __init__(self, scheduler_name: str) -> None:
        self._scheduler_name = scheduler_name
        self._specs: dict[JobShape, PodSpec] = {}

    def job(self, job: TraceJob) -> Job:
        """Returns the job: a single pod, or a gang of all its pods."""
        if job.objects:
            return Job(key=job.objects[0].key, pods=job.objects, minimum=len(job.objects))
        names = [job.name] if job.pods == 1 else [f"{job.name}-{i}" for i in range(job.pods)]
        pods = tuple([self._pod(job, name) for name in names])
        key = pods[0].key if job.pods == 1 else gang_key(job.tenant, "replay", job.name)
        return Job(key=key, pods=pods, minimum=job.pods)

    def _pod(self, job: TraceJob, name: str) -> Pod:
        shape = job.shape
        notes = {gpu.FRACTION.key: f"{shape.gpu_milli / WHOLE_GPU:g}"} if shape.is_part else {}
        if job.declared is not None:
            notes[workload.MAX_RUNTIME.key] = str(max(round(job.declared), 1))
        metadata = ObjectMeta(
            name=name,
            namespace=job.tenant,
            uid=f"{job.tenant}/{name}",
            labels={SIZE_LABEL: size_of(shape)} if shape.gpus else {},
            annotations=notes,
            owner_references=[] if job.duration is None else [_BATCH_JOB],
        )
        return Pod(metadata=metadata, spec=self._spec(shape))

    def _spec(self, shape: JobShape) -> PodSpec:
        known = self._specs.get(shape)
        if known is None:
            asked: dict[str, str | int | float] = {"cpu": f"{shape.cpu}m", "memory": shape.memory}
            if shape.gpus and not shape.is_part:
                asked[GPU_RESOURCE] = shape.gpus
            known = self._specs[shape] = PodSpec(
                scheduler_name=self._scheduler_name,
                priority=shape.priority,
                containers=[Container(name="main", resources=ResourceRequirements(requests=asked, limits=None))],
                affinity=_on_models(shape.models),
            )
        return known


def size_of(shape: JobShape) -> str:
    """Returns the value of SIZE_LABEL."""
    return PART if shape.is_part else str(shape.gpus)


def _on_models(models: tuple[str, ...]) -> Affinity | None:
    if not models:
        return None
    wanted = NodeSelectorRequirement(key=MODEL_LABEL, operator="In", values=list(models))
    term = NodeSelectorTerm(match_expressions=[wanted])
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=[term])))
