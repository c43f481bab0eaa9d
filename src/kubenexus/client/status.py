"""Turns an answer into its body, or into the error that the API server describes in a `Status`."""

import msgspec

from kubenexus.api.meta import ApiObject
from kubenexus.base.errors import truncated
from kubenexus.client.calls import ApiError, Call, Uncertain
from kubenexus.client.http_response import HttpResponse

READS = frozenset({"GET", "HEAD"})


class Details(ApiObject):
    retry_after_seconds: int = 0


class Status(ApiObject):
    """`v1` Status: the body of every refusal, and of an ERROR in a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


_DECODER = msgspec.json.Decoder(Status)
# In messages of the API server when its own store did not answer in time.
_IN_DOUBT = ("timed out", "deadline exceeded", "timeout")


def status_error(code: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """Returns the error in an answer's body. A body that is no Status (a proxy's page) is quoted."""
    try:
        status = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = " ".join(body[:1024].decode("utf-8", "replace").split())
        return ApiError(code, message=f"the server answered {code}: {truncated(text)}" if text else "")
    if retry_after is None and status.details and status.details.retry_after_seconds > 0:
        retry_after = float(status.details.retry_after_seconds)
    return ApiError(code or status.code, status.reason, truncated(status.message), retry_after=retry_after)


def response_body(call: Call, answer: HttpResponse) -> bytes:
    """Returns the body of a 2xx answer. Raises ApiError; or Uncertain if the server itself does not know the outcome of
    a write: a gateway that lost its server, a store that did not answer in time."""
    if 200 <= answer.status < 300:
        return answer.body
    error = status_error(answer.status, answer.body, _seconds(answer.fields.get(b"retry-after")))
    if call.method not in READS and _in_doubt(error):
        raise Uncertain(f"{call}: {error.code} {error}")
    raise error


def _in_doubt(error: ApiError) -> bool:
    if error.code in (502, 504):
        return True
    # ServerTimeout means "not done, try again".
    return error.code == 500 and error.reason != "ServerTimeout" and any(w in error.message for w in _IN_DOUBT)


def _seconds(field: bytes | None) -> float | None:
    """Returns `Retry-After` in seconds; API servers do not use the form with a date."""
    return float(field) if field is not None and field.isdigit() and len(field) < 10 else None
