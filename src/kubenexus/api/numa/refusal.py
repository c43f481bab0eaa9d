"""Why a kubelet refuses a pod."""

from typing import Final

TOPOLOGY: Final = "TopologyAffinityError"
SMT: Final = "SMTAlignmentError"
UNEXPECTED: Final = "UnexpectedAdmissionError"
OUT_OF: Final = "OutOf"  # and the name of a resource


class Refused(Exception):
    """A manager cannot allocate. `reason` is what the kubelet writes into the pod's status."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def unexpected(message: str) -> Refused:
    return Refused(UNEXPECTED, f"Allocate failed due to {message}, which is unexpected")
