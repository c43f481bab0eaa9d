"""Validates the document, besides its shape: kube-scheduler's checks (`validation.go`) and messages.

Profiles are validated by `validate_profiles`, arguments of plugins by `validate_args`.
"""

from typing import Final

from kubenexus.config.durations import Duration
from kubenexus.config.field_errors import FieldPath
from kubenexus.config.v1 import NAMESPACE, SCHEDULER, ClientConnection, KubeSchedulerConfiguration, LeaderElection

_ZERO: Final = Duration(0)
_JITTER: Final = 1.2  # a follower waits up to this much longer than retryPeriod


def validate(document: KubeSchedulerConfiguration, place: FieldPath) -> None:
    """Reports all problems of a document outside its profiles."""
    if document.client_connection.burst < 0:
        place["clientConnection"]["burst"].invalid(document.client_connection.burst, "must be non-negative")
    if document.leader_election.leader_elect:
        _leader_election(document.leader_election, place["leaderElection"])
    if document.parallelism <= 0:
        place["parallelism"].invalid(document.parallelism, "should be an integer value greater than zero")
    check_percentage(document.percentage_of_nodes_to_score, place["percentageOfNodesToScore"])
    _backoff(document, place)
    if document.extenders:
        why = "extenders are not supported: a decision does no I/O, so that it can be repeated and explained"
        place["extenders"].forbidden(f"{why}; write the rule as a plugin")


def check_percentage(value: int | None, place: FieldPath) -> None:
    if value is not None and not 0 <= value <= 100:
        place.invalid(value, "not in valid range [0-100]")


def _leader_election(election: LeaderElection, place: FieldPath) -> None:
    spans = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, span in spans.items():
        if span <= _ZERO:
            place[name].invalid(span, "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        place["leaseDuration"].invalid(election.lease_duration, "must be greater than `RenewDeadline`")
    if election.renew_deadline.nanoseconds <= _JITTER * election.retry_period.nanoseconds:
        place["renewDeadline"].invalid(election.renew_deadline, f"must be greater than `RetryPeriod`*{_JITTER}")
    if election.resource_lock != "leases":
        place["resourceLock"].invalid(election.resource_lock, 'resourceLock value must be "leases"')


def _backoff(document: KubeSchedulerConfiguration, place: FieldPath) -> None:
    first, most = document.pod_initial_backoff_seconds, document.pod_max_backoff_seconds
    if first <= 0:
        place["podInitialBackoffSeconds"].invalid(first, "must be greater than 0")
    if most < first:
        place["podMaxBackoffSeconds"].invalid(most, "must be greater than or equal to PodInitialBackoffSeconds")


def warn(document: KubeSchedulerConfiguration, place: FieldPath) -> None:
    """Notes settings that are accepted and have no effect, or not the expected one."""
    election = document.leader_election
    if document.parallelism != 16:
        place["parallelism"].report("has no effect: all nodes are looked at in one thread, as columns")
    remark_percentage(document.percentage_of_nodes_to_score, place["percentageOfNodesToScore"])
    _content_type(document.client_connection, place["clientConnection"])
    if election.leader_elect and (election.resource_namespace, election.resource_name) == (
        "kube-system",
        "kube-scheduler",
    ):
        ours = f"{NAMESPACE}/{SCHEDULER}"
        place["leaderElection"]["resourceName"].report(
            f"is kube-scheduler's own lease: while it holds it, nothing is scheduled here (ours is {ours})"
        )


def remark_percentage(value: int | None, place: FieldPath) -> None:
    if value:
        place.report("has no effect: all nodes are scored, always")


def _content_type(connection: ClientConnection, place: FieldPath) -> None:
    if connection.content_type != ClientConnection().content_type:
        place["contentType"].report("has no effect: we speak JSON")
