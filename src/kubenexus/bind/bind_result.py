"""`BindResult`: the outcome of a bind. Each status has a consequence of its own.

| status          | what is known                               | what follows                                         |
|-----------------|---------------------------------------------|------------------------------------------------------|
| BOUND           | the pod has the chosen node                 | the watch will confirm it                            |
| POD_GONE        | the pod is deleted, or being deleted        | its capacity is free; nothing is left to do          |
| BOUND_ELSEWHERE | another scheduler bound it to another node  | its capacity here is free; the pod counts there      |
| REJECTED        | the server refused, and would do so again   | its capacity is free; event; again after a backoff   |
| THROTTLED       | the server would not (429), or never        | the same                                             |
|                 | answered                                    |                                                      |
| NOT_SENT        | the bind was never sent                     | its capacity is free; again after a backoff          |
| CONFLICT        | the bind conflicts with something (409), or | a GET of the pod shows with what                     |
|                 | the answer was 404                          |                                                      |
| UNKNOWN         | sent, but no answer or a 5xx: the store may | the pod keeps its capacity until a GET shows         |
|                 | have done it all the same                   |                                                      |
"""

import enum

import msgspec

from kubenexus.api.codec import decode_pod
from kubenexus.api.core import Pod
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.client.calls import ApiError, Uncertain, Unreachable


class BindStatus(enum.Enum):
    """See the table above."""

    BOUND = "bound"
    POD_GONE = "gone"
    BOUND_ELSEWHERE = "elsewhere"
    REJECTED = "refused"
    THROTTLED = "busy"
    NOT_SENT = "never"
    CONFLICT = "taken"
    UNKNOWN = "unsure"

    __hash__ = object.__hash__

    @property
    def is_unresolved(self) -> bool:
        """Whether a GET of the pod has yet to show what happened."""
        return self is BindStatus.CONFLICT or self is BindStatus.UNKNOWN

    @property
    def should_retry(self) -> bool:
        """Whether the pod still needs a node from this scheduler."""
        return self in (BindStatus.REJECTED, BindStatus.THROTTLED, BindStatus.NOT_SENT)


class BindResult(msgspec.Struct, frozen=True, gc=False):
    """The outcome of one bind. `message` is for people. `pod` is what a GET returned, newer than the state of the
    watch. `dropped`: the call was to be sent, and could not be."""

    status: BindStatus
    message: str = ""
    pod: Pod | None = None
    dropped: bool = False


BOUND = BindResult(BindStatus.BOUND)


def result_of_error(error: KubeNexusError) -> BindResult:
    """Returns the result that the error of a bind call means. Raises errors that no bind call has."""
    if isinstance(error, ApiError):
        return BindResult(_status_of(error.code), str(error))
    if isinstance(error, Uncertain):
        return BindResult(BindStatus.UNKNOWN, str(error))
    if isinstance(error, Unreachable):
        return BindResult(BindStatus.NOT_SENT, str(error), dropped=True)
    raise error


def result_of_pod(body: bytes, uid: str, node: str) -> BindResult | None:
    """Returns what the body of a GET shows about the bind of a pod; None if the pod still has no node."""
    try:
        pod = decode_pod(body)
    except Malformed as problem:
        return BindResult(BindStatus.REJECTED, str(problem))
    if pod.metadata.uid != uid:
        return BindResult(BindStatus.POD_GONE, "another pod has its name now")
    if pod.spec.node_name:
        return BindResult(BindStatus.BOUND if pod.spec.node_name == node else BindStatus.BOUND_ELSEWHERE, "", pod)
    return BindResult(BindStatus.POD_GONE, "it is being deleted") if pod.metadata.deletion_timestamp else None


def _status_of(code: int) -> BindStatus:
    if code in (404, 409):  # an admission webhook may deny with 404, too: that the pod is gone is for a GET to say
        return BindStatus.CONFLICT
    if code >= 500:
        return BindStatus.UNKNOWN
    return BindStatus.THROTTLED if code == 429 else BindStatus.REJECTED
