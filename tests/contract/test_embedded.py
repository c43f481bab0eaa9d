"""The contract, kept by the embedded server. `tests/e2e/test_contract.py` asks the same of a real one."""

from collections.abc import Iterator

import pytest

from tests.contract import suite
from tests.contract.api import install_widgets
from tests.contract.embedded import client
from tests.contract.http import Http


@pytest.fixture(scope="module")
def http() -> Iterator[Http]:
    with client() as opened:
        install_widgets(opened)
        yield opened


@pytest.mark.parametrize("case", list(suite.CASES.values()), ids=list(suite.CASES))
def test_contract(case: suite.Case, http: Http) -> None:
    suite.run(case, http)
