"""The contract, kept by a real kube-apiserver: what `tests/contract` asserts is true."""

from collections.abc import Iterator

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane
from tests.contract import suite
from tests.contract.api import install_widgets
from tests.contract.http import Http


@pytest.fixture(scope="module")
def http(plane: ControlPlane) -> Iterator[Http]:
    opened = Http.of_plane(plane)
    install_widgets(opened)
    yield opened
    opened.ask("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.contract.kubenexus.io")
    opened.close()


@pytest.mark.parametrize("case", list(suite.CASES.values()), ids=list(suite.CASES))
def test_contract(case: suite.Case, http: Http, cluster: ClusterClient) -> None:
    """`cluster` cleans up behind it."""
    suite.run(case, http)
