"""A real control plane for tests, benchmarks and authors of plugins."""

from kubenexus.testing.controlplane.cluster import ClusterClient, Object, Objects, RequestRefused, WaitTimeout
from kubenexus.testing.controlplane.plane import ControlPlane, KubectlFailed, free_ports
from kubenexus.testing.controlplane.processes import DidNotStart, ManagedProcess, ProcessGroup

__all__ = [
    "ClusterClient",
    "ControlPlane",
    "DidNotStart",
    "KubectlFailed",
    "ManagedProcess",
    "Object",
    "Objects",
    "ProcessGroup",
    "RequestRefused",
    "WaitTimeout",
    "free_ports",
]
