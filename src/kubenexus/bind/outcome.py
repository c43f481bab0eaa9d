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


class Fate(enum.Enum):
    """See the table above."""

    BOUND = "bound"
    GONE = "gone"
    ELSEWHERE = "elsewhere"
    REFUSED = "refused"
    BUSY = "busy"
    NEVER = "never"
    TAKEN = "taken"
    UNSURE = "unsure"

    __hash__ = object.__hash__

    @property
    def open(self) -> bool:
        """Whether it has yet to be found out what happened."""
        return self is Fate.TAKEN or self is Fate.UNSURE

    @property
    def again(self) -> bool:
        """Whether the pod still needs a node, and is ours to place."""
        return self in (Fate.REFUSED, Fate.BUSY, Fate.NEVER)


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """`message` is for people; `pod` is what a look found, newer than what the watch has said. `dropped`: a call that
    we wanted to send, and that could not be."""

    fate: Fate
    message: str = ""
    pod: Pod | None = None
    dropped: bool = False


BOUND = Outcome(Fate.BOUND)


def outcome_of(error: KubeNexusError) -> Outcome:
    """What the answer to a bind means."""
    if isinstance(error, ApiError):
        return Outcome(_fate_of(error.code), str(error))
    if isinstance(error, Uncertain):
        return Outcome(Fate.UNSURE, str(error))
    if isinstance(error, Unreachable):
        return Outcome(Fate.NEVER, str(error), dropped=True)
    raise error


def found(body: bytes, uid: str, node: str) -> Outcome | None:
    """What a look at the pod tells about our bind; None: the pod still has no node."""
    try:
        pod = decode_pod(body)
    except Malformed as problem:
        return Outcome(Fate.REFUSED, str(problem))
    if pod.metadata.uid != uid:
        return Outcome(Fate.GONE, "another pod has its name now")
    if pod.spec.node_name:
        return Outcome(Fate.BOUND if pod.spec.node_name == node else Fate.ELSEWHERE, "", pod)
    return Outcome(Fate.GONE, "it is being deleted") if pod.metadata.deletion_timestamp else None


def _fate_of(code: int) -> Fate:
    if code == 404:
        return Fate.GONE
    if code == 409:
        return Fate.TAKEN
    if code >= 500:
        return Fate.UNSURE
    return Fate.BUSY if code == 429 else Fate.REFUSED
