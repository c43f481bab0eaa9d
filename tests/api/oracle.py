"""Where the sample of recorded verdicts of Kubernetes lie, and how the tests of this folder read them."""

import functools
import gzip
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings

FOLDER = Path(__file__).parents[1] / "oracle" / "data"
# Random examples, but the same ones every time: a test that fails today fails tomorrow.
steady = settings(derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@functools.cache
def recorded(name: str) -> list[dict[str, Any]]:
    """One file of the oracle: vectors, or cases with what was expected."""
    with gzip.open(FOLDER / f"{name}.json.gz") as file:
        return msgspec.json.decode(file.read())
