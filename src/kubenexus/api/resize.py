"""In-place resize of a pod, by its status: the resources that the kubelet has allocated, and those in force."""

from kubenexus.api.core import ContainerStatus, Pod, ResourceList


def is_resized(pod: Pod) -> bool:
    """Returns whether the status can give other amounts than the spec."""
    status = pod.status
    if status.resources is not None or status.allocated_resources is not None or is_infeasible(pod):
        return True
    if not status.container_statuses and not status.init_container_statuses:
        return False
    statuses = statuses_of(pod)
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        found, wanted = statuses.get(container.name), container.resources.requests
        if found and (
            found.allocated_resources not in (None, wanted)
            or (found.resources and found.resources.requests not in (None, wanted))
        ):
            return True
    return False


def statuses_of(pod: Pod) -> dict[str, ContainerStatus]:
    """Returns statuses by container. The first status of a name counts, and containers' come before init
    containers'."""
    listed = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return {status.name: status for status in reversed(listed)}


def reported_resources(status: ContainerStatus | None, *, actual: bool) -> ResourceList | None:
    """Returns the resources that the kubelet reports for a container: those in force (`actual`), else those
    allocated."""
    if status is None:
        return None
    if actual and status.resources is not None and status.resources.requests is not None:
        return status.resources.requests
    return status.allocated_resources


def is_infeasible(pod: Pod) -> bool:
    """Returns whether the node can never provide the requested resources."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False
