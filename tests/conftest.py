"""How hard Hypothesis tries, how rarely garbage is collected, and that whoever is interrupted ends.

`HYPOTHESIS_PROFILE=thorough make test` looks for what the quick run did not find.
"""

import gc
import os
import signal

from hypothesis import HealthCheck, Phase, settings

from kubenexus.base import gc_tuning

BASE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

# The same examples on every machine and in every run: what passes here passes there.
settings.register_profile("default", BASE, max_examples=25, derandomize=True, database=None)
settings.register_profile("thorough", BASE, max_examples=2000)
# Fresh examples each time and no shrinking: to see at once whether there is something to find.
settings.register_profile("quick", BASE, max_examples=50, database=None, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell that starts us in the background lets us ignore Ctrl-C, and whatever we start would ignore it, too: a program
# that is interrupted by a test would never end.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Collecting makes millions of objects that stay: each full collection looks through all of them so far.
gc.set_threshold(*gc_tuning.THRESHOLDS)


def pytest_collection_finish() -> None:
    """Sets the garbage collector as a scheduler does. What was imported and collected is millions of objects: looking
    through them took each full collection half a second. One test in fourteen: 60 s of CPU before, 46 s now."""
    gc.collect()
    gc_tuning.freeze_after_import()
