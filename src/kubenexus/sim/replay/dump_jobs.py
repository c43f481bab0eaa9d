"""The pods of a cluster dump as jobs: those that wait, or with `again` all that could be placed again."""

from collections.abc import Iterable

from msgspec.structs import replace

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.devices.pod_needs import device_needs
from kubenexus.api.keys import gpu
from kubenexus.api.resources import demand
from kubenexus.base.errors import Malformed
from kubenexus.sim.replay.traces.trace import WHOLE_GPU, JobShape, TraceJob
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import is_finished, of_daemon_set

_STATIC = "kubernetes.io/config.source"  # on pods that a kubelet reads from its own files
_GIVEN = (gpu.DEVICES.key, gpu.VISIBLE_DEVICES.key)


def dump_jobs(pods: Iterable[Pod], *, again: bool) -> list[TraceJob]:
    """Returns a job for each pod that is to be placed, in the order of creation, one a second.

    These are the pods without a node; with `again` also those with one, but for DaemonSets' and static pods. Pods that
    ended or are being deleted are left out, and so are those that cannot be read. Members of gangs are jobs of one.
    """
    found: list[TraceJob] = []
    for pod in sorted(pods, key=lambda each: (each.metadata.creation_timestamp, each.key)):
        if (
            is_finished(pod)
            or pod.metadata.deletion_timestamp
            or not ((again and _moves(pod)) or not pod.spec.node_name)
        ):
            continue
        try:
            shape = shape_of(pod)
        except Malformed:
            continue
        tenant = pod.metadata.namespace
        found.append(TraceJob(pod.key, shape, float(len(found)), None, 1, tenant, (without_node(pod),)))
    return found


def remove_jobs(ledger: Ledger, jobs: Iterable[TraceJob]) -> Ledger:
    """Removes the pods of these jobs from the nodes where they run."""
    for job in jobs:
        ledger.remove_pod(job.name)
    return ledger


def _moves(pod: Pod) -> bool:
    return not of_daemon_set(pod) and pod.metadata.annotations.get(_STATIC, "api") == "api"


def shape_of(pod: Pod) -> JobShape:
    """Returns what a pod asks for. Raises Malformed."""
    amounts = dict(demand(pod).amounts)
    needs = device_needs(pod)
    gpus = sum(amount for name, amount in amounts.items() if is_device_resource(name))
    share = needs.share if needs is not None else 0
    return JobShape(
        cpu=amounts.get("cpu", 0),
        memory=amounts.get("memory", 0),
        gpus=gpus or (1 if share else 0),
        gpu_milli=share or WHOLE_GPU,
        priority=pod.spec.priority,
    )


def without_node(pod: Pod) -> Pod:
    """Returns the pod as it was before it got a node and devices."""
    notes = {key: value for key, value in pod.metadata.annotations.items() if key not in _GIVEN}
    metadata = replace(pod.metadata, annotations=notes)
    status = replace(pod.status, nominated_node_name="")
    spec = replace(pod.spec, node_name="") if pod.spec.node_name else pod.spec
    return replace(pod, metadata=metadata, spec=spec, status=status)
