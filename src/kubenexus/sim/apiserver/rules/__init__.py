"""What becomes of an object: defaults, admission and checks of each kind, as functions over plain dicts.

They are pure: what they need to know of the rest of the cluster is in the `World` they are handed.
"""

from kubenexus.sim.apiserver.rules.rule import Rule, World
from kubenexus.sim.apiserver.rules.table import rule_of

__all__ = ["Rule", "World", "rule_of"]
