"""How many rounds a test plays that draws its cases itself: a few in each run, all of them in a thorough one.

`HYPOTHESIS_PROFILE=thorough` is the same switch as for the tests that Hypothesis draws.
"""

import os


def rounds(few: int, thorough: int) -> int:
    """Returns `thorough` under the profile of that name, and `few` otherwise."""
    return thorough if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else few
