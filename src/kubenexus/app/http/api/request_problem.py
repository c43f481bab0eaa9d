"""Why a request is not answered, as an exception."""

import msgspec

from kubenexus.app.http.authorization import AuthFailure


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""


class RequestProblem(Exception):
    """An HTTP status, the reason as in Kubernetes' `Status`, and a message for the client."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message

    @property
    def body(self) -> bytes:
        """The `Status` object that Kubernetes clients expect."""
        return AuthFailure(self.status, self.reason, self.message).body

    @classmethod
    def of(cls, status: int, body: bytes) -> "RequestProblem":
        """Returns the problem with this body."""
        try:
            found = msgspec.json.decode(body, type=_Status)
        except msgspec.DecodeError:
            found = _Status("InternalError", "the question could not be answered")
        return cls(status, found.reason, found.message)


def bad_request(message: str) -> RequestProblem:
    return RequestProblem(400, "BadRequest", message)


def not_found(message: str) -> RequestProblem:
    return RequestProblem(404, "NotFound", message)


def forbidden(message: str) -> RequestProblem:
    return RequestProblem(403, "Forbidden", message)
