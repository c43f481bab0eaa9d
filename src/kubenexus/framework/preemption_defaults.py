"""The defaults of GangPreemption, for the configuration and for the planner."""

from typing import Final

PROTECTED_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "kubenexus-system")
MAX_VICTIMS: Final = 1_000
MAX_MOVED_PODS: Final = 16
