"""Where the recorded verdicts of Kubernetes lie, and how the tests of this folder read them."""

import functools
import gzip
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings

# Random examples, but the same ones every time: a test that fails today fails tomorrow.
steady = settings(derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def oracle_dir() -> Path:
    """`../shared/data/oracle` beside the repository. Its absence is a failure: these tests are the contract."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "data" / "oracle"
    if not folder.is_dir():
        raise FileNotFoundError(f"the recorded verdicts of kube-scheduler are missing: no folder {folder}")
    return folder


@functools.cache
def recorded(name: str) -> list[dict[str, Any]]:
    """One file of the oracle: vectors, or cases with what was expected."""
    with gzip.open(oracle_dir() / f"{name}.json.gz") as file:
        return msgspec.json.decode(file.read())
