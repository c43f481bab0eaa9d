"""Compares our answers with the recorded ones of Kubernetes' own plugins, plugin by plugin and node by node.

    python -m kubenexus.testing.oracle PATH...

    files ─▶ cluster ─▶ our_answers ─▶ cases, scores, vectors ─▶ comparison_counts ─▶ report
      └────▶ answer_counts (how much there is to compare, counted without any of the above)

The built-in plugins determine what is compared (`upstream.BuiltProfile`): a plugin that is added to `kubenexus.plugins`
is compared from then on, and answers of missing plugins count as *not compared*.
"""

from kubenexus.testing.oracle.compare_run import judge
from kubenexus.testing.oracle.comparison_counts import ComparisonCounts, Difference

__all__ = ["ComparisonCounts", "Difference", "judge"]
