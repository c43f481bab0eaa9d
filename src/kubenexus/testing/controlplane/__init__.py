"""A real control plane for tests, for benchmarks and for people who write plugins."""

from kubenexus.testing.controlplane.cluster import Cluster, NotInTime, Object, Objects, Refused
from kubenexus.testing.controlplane.family import DidNotStart, Family, Program
from kubenexus.testing.controlplane.plane import ControlPlane, KubectlFailed, free_ports

__all__ = [
    "Cluster",
    "ControlPlane",
    "DidNotStart",
    "Family",
    "KubectlFailed",
    "NotInTime",
    "Object",
    "Objects",
    "Program",
    "Refused",
    "free_ports",
]
