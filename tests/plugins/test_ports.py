"""NodePorts: which ports of a host clash."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.testing.builders import a_container, a_node, a_pod
from kubenexus.testing.harness import run

TAKEN = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."


@pytest.mark.parametrize(
    ("has", "wants", "clash"),
    [
        pytest.param(80, 80, True, id="the same port"),
        pytest.param(80, 81, False, id="another port"),
        pytest.param("80/TCP", "80/UDP", False, id="another protocol"),
        pytest.param("10.0.0.1:80", "10.0.0.2:80", False, id="another address"),
        pytest.param("10.0.0.1:80", "10.0.0.1:80", True, id="the same address"),
        pytest.param("0.0.0.0:80", "10.0.0.1:80", True, id="every address is taken"),
        pytest.param("10.0.0.1:80", 80, True, id="every address is wanted"),
        pytest.param("0.0.0.0:80", 80, True, id="no address means every address"),
        pytest.param(0, 0, False, id="0 is no port"),
    ],
)
def test_two_pods_on_a_host(has: str | int, wants: str | int, clash: bool) -> None:
    done = run([a_node("n1")], [a_pod("q", node="n1", ports=[has]), a_pod("p", ports=[wants])])
    assert done.refusals == ({"p": TAKEN} if clash else {})


@pytest.mark.parametrize(
    ("pod", "clash"),
    [
        pytest.param(a_pod("p", sidecars=[a_container("s", ports=[80])]), True, id="a sidecar's ports count"),
        pytest.param(a_pod("p", init=[a_container("i", ports=[80])]), False, id="an init container's do not"),
        pytest.param(a_pod("p", ports=[81, 80]), True, id="one of two clashes"),
    ],
)
def test_whose_ports_count(pod: Pod, clash: bool) -> None:
    done = run([a_node("n1")], [a_pod("q", node="n1", ports=[80]), pod])
    assert done.refusals == ({"p": TAKEN} if clash else {})


def test_a_port_that_two_pods_hold_is_free_when_both_are_gone() -> None:
    """Upstream frees it with the first; that is a bug of its set, and ours is a count."""
    holders = [a_pod(name, node="n1", ports=[80]) for name in ("a", "b")]
    done = run([a_node("n1")], holders)
    done.ledger.remove_pod("default/a")
    assert done.then([a_pod("p", ports=[80])]).refusals == {"p": TAKEN}
    done.ledger.remove_pod("default/b")
    assert done.then([a_pod("p", ports=[80])]).placements == {"p": "n1"}


def test_a_pod_may_list_the_same_port_twice() -> None:
    done = run([a_node("n1")], [a_pod("p", ports=[80, 80])])
    assert done.placements == {"p": "n1"}
    done.ledger.remove_pod("default/p")
    assert done.then([a_pod("q", ports=[80])]).placements == {"q": "n1"}
