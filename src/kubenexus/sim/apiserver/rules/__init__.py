"""The defaults, admission and checks of each kind, as functions over plain dicts.

They are pure: what they need of the rest of the cluster comes from the `ClusterReader` argument.
"""

from kubenexus.sim.apiserver.rules.base import ClusterReader, Rule
from kubenexus.sim.apiserver.rules.registry import rule_of

__all__ = ["ClusterReader", "Rule", "rule_of"]
