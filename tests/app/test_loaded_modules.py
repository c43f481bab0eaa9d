"""What the scheduler process loads before it schedules, so that no turn of its loop waits for it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", [pytest.param("numpy.ma", id="what np.unique loads at its first call")])
def test_it_is_loaded_with_the_process(module: str) -> None:
    program = f"import sys, kubenexus.app.process; sys.exit({module!r} not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=120).returncode == 0
