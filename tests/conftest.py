"""How hard Hypothesis tries. `HYPOTHESIS_PROFILE=thorough make test` looks for what the quick run did not find."""

import os

from hypothesis import HealthCheck, Phase, settings

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

# The same examples on every machine and in every run: what passes here passes there.
settings.register_profile("default", max_examples=60, derandomize=True, database=None, **COMMON)
settings.register_profile("thorough", max_examples=2000, **COMMON)
settings.register_profile("quick", max_examples=60, database=None, phases=[Phase.generate], **COMMON)  # no shrinking
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
