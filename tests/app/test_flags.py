"""What is said on the command line is checked as the file is."""

import pytest

from kubenexus.app.flags import Flags, overridden
from kubenexus.app.lease import Terms
from kubenexus.config import InvalidConfiguration, defaults
from kubenexus.config.durations import Duration
from kubenexus.framework.registry import with_entry_points
from kubenexus.plugins import BUILT_IN

PLUGINS = with_entry_points(BUILT_IN)
NO_TIME = "must be at least 1s less than `LeaseDuration`: what lies between them is the time that a write may take"


def terms(lease: str, renew: str, retry: str = "2s") -> Terms:
    said = {"lease_duration": lease, "renew_deadline": renew, "retry_period": retry}
    flags = Flags(leader_election={name: Duration.of(text) for name, text in said.items()})
    return Terms.of(overridden(defaults(PLUGINS), flags).document.leader_election)


@pytest.mark.parametrize(
    ("lease", "renew", "write"),
    [
        pytest.param("15s", "10s", 5.0, id="kube-scheduler's defaults"),
        pytest.param("15s", "14s", 1.0, id="a second to write"),
        pytest.param("11s", "9.5s", 1.5, id="a renew deadline with a fraction"),
        pytest.param("1m", "30s", 30.0, id="minutes"),
    ],
)
def test_lease_settings_that_leave_time_to_write(lease: str, renew: str, write: float) -> None:
    found = terms(lease, renew)
    assert found.write_timeout == write
    assert found.renew + found.write_timeout <= found.lease


@pytest.mark.parametrize(
    ("lease", "renew", "problems"),
    [
        pytest.param("15s", "14.999s", {"renewDeadline": NO_TIME}, id="a millisecond to write"),
        pytest.param("15s", "14.5s", {"renewDeadline": NO_TIME}, id="half a second to write"),
        pytest.param(
            "10.9s",
            "10.5s",
            {"leaseDuration": "must be whole seconds, as a Lease has them", "renewDeadline": NO_TIME},
            id="less than no time, as a Lease has whole seconds",
        ),
        pytest.param(
            "10.9s", "5s", {"leaseDuration": "must be whole seconds, as a Lease has them"}, id="a lease with a fraction"
        ),
        pytest.param(
            "10s", "10s", {"leaseDuration": "must be greater than `RenewDeadline`"}, id="both equal: one error"
        ),
    ],
)
def test_lease_settings_with_which_nothing_would_be_written_are_refused(
    lease: str, renew: str, problems: dict[str, str]
) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        terms(lease, renew)
    found = {problem.path: str(problem) for problem in refused.value.problems}
    assert list(found) == [f"leaderElection.{name}" for name in problems]
    assert all(found[f"leaderElection.{name}"].endswith(text) for name, text in problems.items())
