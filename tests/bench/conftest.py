"""A bench sets the garbage collector for the whole process; the tests that come after want it back."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as in tests/conftest.py
    gc.set_threshold(*before)
