"""The texts of `/livez` and its like, to the byte: probes and people know them from kube-scheduler."""

import pytest

from kubenexus.app.http.health import Checks, check_page, ping, root_page


def broken() -> str:
    return "the secret reason"


def crashing() -> str:
    raise RuntimeError("boom")


WELL: Checks = {"leaderElection": ping, "shutdown": ping}
SICK: Checks = {"leaderElection": ping, "informer-sync": broken, "loop-lag": crashing}


def test_all_is_well() -> None:
    assert root_page("readyz", WELL) == (200, "ok")
    assert root_page("livez", {}, verbose=True) == (200, "[+]ping ok\nlivez check passed\n")
    assert root_page("readyz", WELL, verbose=True) == (
        200,
        "[+]leaderElection ok\n[+]shutdown ok\nreadyz check passed\n",
    )


@pytest.mark.parametrize("verbose", [True, False])
def test_what_failed_is_always_named_but_not_why(verbose: bool) -> None:
    assert root_page("readyz", SICK, verbose=verbose) == (
        500,
        "[+]leaderElection ok\n"
        "[-]informer-sync failed: reason withheld\n"
        "[-]loop-lag failed: reason withheld\n"
        "readyz check failed\n",
    )


def test_checks_can_be_excluded() -> None:
    assert root_page("readyz", SICK, ["informer-sync", "loop-lag", "typo"], verbose=True) == (
        200,
        "[+]leaderElection ok\n"
        "[+]informer-sync excluded: ok\n"
        "[+]loop-lag excluded: ok\n"
        'warn: some health checks cannot be excluded: no matches for "typo"\n'
        "readyz check passed\n",
    )


def test_one_check_says_why() -> None:
    assert check_page(ping) == (200, "ok")
    assert check_page(broken) == (500, "internal server error: the secret reason\n")
    assert check_page(crashing) == (500, "internal server error: RuntimeError: boom\n")
