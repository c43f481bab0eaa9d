"""The judge: compares our answers with what Kubernetes' own plugins answered, plugin by plugin and node by node.

    python -m kubenexus.testing.oracle PATH...

    files ─▶ cluster (a ledger per case) ─▶ ours (our answers) ─▶ cases, scores, vectors (compare) ─▶ tally ─▶ report
      └────▶ held (how much there is to compare, counted without any of the above)

What is compared follows from which plugins are built in (`upstream.BuiltProfile`): a plugin that is added to
`kubenexus.plugins` is judged from then on, and what is not built is counted as *not compared*.
"""

from kubenexus.testing.oracle.compare_run import judge
from kubenexus.testing.oracle.comparison_counts import ComparisonCounts, Difference

__all__ = ["ComparisonCounts", "Difference", "judge"]
