"""What became of a bind, as a value: each fate has a consequence of its own.

| fate      | what is known                               | what follows                                            |
|-----------|---------------------------------------------|---------------------------------------------------------|
| BOUND     | the pod has the node we chose               | the watch will confirm it                               |
| GONE      | the pod is deleted, or being deleted        | its room is free; nothing to do any more                |
| ELSEWHERE | somebody else bound it to another node      | its room here is free; it counts there                  |
| REFUSED   | the server says no, and would say so again  | its room is free; told to people; again after a backoff |
| BUSY      | the server would not (429), or never says   | the same                                                |
| NEVER     | it was never sent                           | its room is free; again after a backoff                 |
| TAKEN     | it conflicts with something                 | a look tells with what                                  |
| UNSURE    | sent, and no answer, or 5xx: the store may  | it keeps its room until a look tells                    |
|           | have done it all the same                   |                                                         |
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
        """Whether it has yet to be found out what happened."""
        return self is BindStatus.CONFLICT or self is BindStatus.UNKNOWN

    @property
    def should_retry(self) -> bool:
        """Whether the pod still needs a node, and is ours to place."""
        return self in (BindStatus.REJECTED, BindStatus.THROTTLED, BindStatus.NOT_SENT)


class BindResult(msgspec.Struct, frozen=True, gc=False):
    """`message` is for people; `pod` is what a look found, newer than what the watch has said. `dropped`: a call that
    we wanted to send, and that could not be."""

    status: BindStatus
    message: str = ""
    pod: Pod | None = None
    dropped: bool = False


BOUND = BindResult(BindStatus.BOUND)


def result_of_error(error: KubeNexusError) -> BindResult:
    """What the answer to a bind means."""
    if isinstance(error, ApiError):
        return BindResult(_fate_of(error.code), str(error))
    if isinstance(error, Uncertain):
        return BindResult(BindStatus.UNKNOWN, str(error))
    if isinstance(error, Unreachable):
        return BindResult(BindStatus.NOT_SENT, str(error), dropped=True)
    raise error


def result_of_pod(body: bytes, uid: str, node: str) -> BindResult | None:
    """What a look at the pod tells about our bind; None: the pod still has no node."""
    try:
        pod = decode_pod(body)
    except Malformed as problem:
        return BindResult(BindStatus.REJECTED, str(problem))
    if pod.metadata.uid != uid:
        return BindResult(BindStatus.POD_GONE, "another pod has its name now")
    if pod.spec.node_name:
        return BindResult(BindStatus.BOUND if pod.spec.node_name == node else BindStatus.BOUND_ELSEWHERE, "", pod)
    return BindResult(BindStatus.POD_GONE, "it is being deleted") if pod.metadata.deletion_timestamp else None


def _fate_of(code: int) -> BindStatus:
    if code in (404, 409):  # an admission webhook may deny with 404, too: that the pod is gone is for a GET to say
        return BindStatus.CONFLICT
    if code >= 500:
        return BindStatus.UNKNOWN
    return BindStatus.THROTTLED if code == 429 else BindStatus.REJECTED
