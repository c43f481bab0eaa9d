"""What is said on the command line is checked as the file is."""

import pytest

from kubenexus.app.election.lease import LeaseConfig
from kubenexus.app.flags import Flags, apply_flags
from kubenexus.base.errors import KubeNexusError
from kubenexus.config import InvalidConfiguration, defaults
from kubenexus.config.durations import Duration
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN

PLUGINS = load_plugins(BUILT_IN)


def terms(lease: str, renew: str, retry: str = "2s") -> LeaseConfig:
    said = {"lease_duration": lease, "renew_deadline": renew, "retry_period": retry}
    flags = Flags(leader_election={name: Duration.of(text) for name, text in said.items()})
    return LeaseConfig.of(apply_flags(defaults(PLUGINS), flags).document.leader_election)


@pytest.mark.parametrize(
    ("lease", "renew", "expected"),
    [
        pytest.param("15s", "10s", (15, 10.0), id="kube-scheduler's defaults"),
        pytest.param("15s", "14s", (15, 14.0), id="a second to write"),
        pytest.param("11s", "9.5s", (11, 9.5), id="a renew deadline with a fraction"),
        pytest.param("1m", "30s", (60, 30.0), id="minutes"),
        pytest.param("15s", "14.999s", (15, 14.0), id="a millisecond to write"),
        pytest.param("10.9s", "10.5s", (11, 10.0), id="a lease with a fraction and less than a second to write"),
        pytest.param("10.1s", "9.5s", (11, 9.5), id="a lease with a fraction and, rounded up, time to write"),
        pytest.param("3s", "2.9s", (3, 2.0), id="a short lease"),
        pytest.param("900ms", "800ms", (1, 1 - 1 / 3), id="a very short lease: a third of it"),
    ],
)
def test_each_lease_leaves_time_to_write(lease: str, renew: str, expected: tuple[int, float]) -> None:
    found = terms(lease, renew, "500ms")
    assert (found.lease, found.renew) == pytest.approx(expected)
    assert found.write_timeout >= min(1.0, found.lease / 3) - 1e-9
    assert found.renew + found.write_timeout <= found.lease


def test_a_renew_deadline_that_is_not_before_the_end_of_the_lease_is_an_error() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        terms("10s", "10s")
    assert [problem.path for problem in refused.value.problems] == ["leaderElection.leaseDuration"]


@pytest.mark.parametrize("name", ["default-scheduler", "Batch_2.x", "example.com/batch"])
def test_a_scheduler_may_be_called_what_events_may_name(name: str) -> None:
    assert apply_flags(defaults(PLUGINS), Flags(scheduler_name=name)).profiles[0].name == name


@pytest.mark.parametrize("name", ["a b", "-a", "a\n", "/a", "A.b/c", "a/b/c", "x" * 64, "ä"])
def test_no_scheduler_has_a_name_that_events_cannot_have(name: str) -> None:
    with pytest.raises(KubeNexusError, match=r"is not a qualified name such as"):
        apply_flags(defaults(PLUGINS), Flags(scheduler_name=name))
