"""Declared features: those of a node's kubelet, and those that a pod needs.

A node lists feature names in `status.declaredFeatures`. Most matter only when a running pod is changed. The three below
follow from a pod's spec, and so decide where it can start. An older kubelet would run such a pod wrongly instead of
refusing it, which is why this is a filter.
"""

from typing import Final

from kubenexus.api.core import Pod

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"
VOLUME_BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"

SCHEDULING_FEATURES: Final = frozenset(
    {RESTART_ALL_CONTAINERS, USER_NAMESPACES_HOST_NETWORK, VOLUME_BIND_MOUNT_OPTIONS}
)

_NONE: Final[frozenset[str]] = frozenset()


def required_features(pod: Pod) -> frozenset[str]:
    """Returns the features that a node must declare to start this pod."""
    needed = [name for name, needs in _RULES if needs(pod)]
    return frozenset(needed) if needed else _NONE


def _restarts_all_containers(pod: Pod) -> bool:
    for containers in (pod.spec.containers, pod.spec.init_containers):
        for container in containers:
            for rule in container.restart_policy_rules:
                if rule.action == "RestartAllContainers":
                    return True
    return False


def _shares_host_network_from_user_namespace(pod: Pod) -> bool:
    return pod.spec.host_network and not pod.spec.host_users


def _sets_bind_mount_options(pod: Pod) -> bool:
    for containers in (pod.spec.containers, pod.spec.init_containers, pod.spec.ephemeral_containers):
        for container in containers:
            for mount in container.volume_mounts:
                if mount.bind_mount_options:
                    return True
    return False


_RULES: Final = (
    (RESTART_ALL_CONTAINERS, _restarts_all_containers),
    (USER_NAMESPACES_HOST_NETWORK, _shares_host_network_from_user_namespace),
    (VOLUME_BIND_MOUNT_OPTIONS, _sets_bind_mount_options),
)
