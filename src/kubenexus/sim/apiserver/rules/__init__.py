"""What becomes of an object: defaults, admission and checks of each kind, as functions over plain dicts.

They are pure: what they need to know of the rest of the cluster is in the `ClusterReader` they are handed.
"""

from kubenexus.sim.apiserver.rules.base import ClusterReader, Rule
from kubenexus.sim.apiserver.rules.registry import rule_of

__all__ = ["ClusterReader", "Rule", "rule_of"]
