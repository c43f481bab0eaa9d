"""An admission review as the API server sends it, and its response."""

import base64
from typing import Any, Final

import msgspec

from kubenexus.api.codec import encode
from kubenexus.api.json_outline import without_deep_parts
from kubenexus.api.meta import ApiObject
from kubenexus.base.errors import Malformed

API_VERSION: Final = "admission.k8s.io/v1"
# Of one response. A warning is a header of the answer to the user: clients cut one after 256 characters, and the API
# server drops what is beyond 4,096 characters in all.
MAX_WARNINGS: Final = 10
MAX_LENGTH: Final = 256
MAX_REASONS: Final = 5  # of one refusal

_UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_NOTHING: Final = msgspec.Raw(b"null")

Object = dict[str, Any]


class GroupVersionKind(ApiObject):
    group: str = ""
    version: str = ""
    kind: str = ""


class AdmissionRequest(ApiObject):
    """What is about to be written. `object` is None for a DELETE, `old_object` for a CREATE."""

    uid: str
    kind: GroupVersionKind = GroupVersionKind()
    operation: str = ""
    namespace: str | None = None
    name: str | None = None
    sub_resource: str | None = None
    object: Any = None
    old_object: Any = None


class _Review(ApiObject):
    request: AdmissionRequest
    api_version: str = ""
    kind: str = ""


class _RawRequest(AdmissionRequest):
    object: msgspec.Raw = _NOTHING
    old_object: msgspec.Raw = _NOTHING


class _RawReview(ApiObject):
    request: _RawRequest
    api_version: str = ""
    kind: str = ""


class _OutlinedMeta(ApiObject):
    labels: Any = msgspec.UNSET
    annotations: Any = msgspec.UNSET
    deletion_timestamp: Any = msgspec.UNSET
    owner_references: Any = msgspec.UNSET


class _OutlinedSpec(ApiObject):
    scheduling_group: Any = msgspec.UNSET
    workload_ref: Any = msgspec.UNSET


class _OutlinedPod(ApiObject):
    """What the checks of a pod read. Any type of value is taken, since the checks judge it."""

    metadata: _OutlinedMeta = _OutlinedMeta()
    spec: _OutlinedSpec = _OutlinedSpec()


class PatchOperation(msgspec.Struct, frozen=True, gc=False):
    """One operation of a JSON patch (RFC 6902)."""

    op: str
    path: str
    value: Any


class Response(msgspec.Struct, frozen=True, gc=False):
    """The verdict. `message` is empty if the object is allowed; `patch` changes it."""

    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[PatchOperation, ...] = ()

    @property
    def allowed(self) -> bool:
        return not self.message


ALLOWED: Final = Response()
_DECODER: Final = msgspec.json.Decoder(_Review)
_RAW_DECODER: Final = msgspec.json.Decoder(_RawReview)
_POD_DECODER: Final = msgspec.json.Decoder(_OutlinedPod)


def decode_review(body: bytes) -> AdmissionRequest:
    """Returns the request of a review. Parts that are nested deeper than any field of Kubernetes are left out. Raises
    Malformed."""
    try:
        review = _DECODER.decode(body)
    except _UNDECODABLE:
        try:
            review = _DECODER.decode(without_deep_parts(body))
        except _UNDECODABLE as error:
            raise Malformed(f"no AdmissionReview: {error}"[:MAX_LENGTH]) from None
    _must_be_review(review)
    return review.request


def decode_outline(body: bytes) -> AdmissionRequest:
    """Returns the request like `decode_review`, and of a pod only what is checked: half the time, since most of a pod
    are fields that no check reads. Raises Malformed."""
    try:
        review = _RAW_DECODER.decode(body)
        request = review.request
        if request.kind.kind != "Pod" or request.kind.group:
            return decode_review(body)
        old = None if request.old_object == _NOTHING else _outline(request.old_object)
        new = _outline(request.object)
    except _UNDECODABLE:
        return decode_review(body)  # it has deep parts or a field of another type, or is malformed
    _must_be_review(review)
    return AdmissionRequest(
        uid=request.uid,
        kind=request.kind,
        operation=request.operation,
        namespace=request.namespace,
        name=request.name,
        sub_resource=request.sub_resource,
        object=new,
        old_object=old,
    )


def _outline(pod: msgspec.Raw) -> Any:
    return msgspec.to_builtins(_POD_DECODER.decode(pod))


def _must_be_review(review: _Review | _RawReview) -> None:
    if review.api_version != API_VERSION or review.kind != "AdmissionReview" or not review.request.uid:
        raise Malformed(f"no AdmissionReview of {API_VERSION} with a request")


def encode_review(uid: str, response: Response) -> bytes:
    """Returns the body that answers the request with this UID."""
    answer: Object = {"uid": uid, "allowed": response.allowed}
    if response.message:
        answer["status"] = {"code": 403, "reason": "Forbidden", "message": response.message}
    if response.warnings:
        answer["warnings"] = list(response.warnings)
    if response.patch:
        answer["patchType"] = "JSONPatch"
        answer["patch"] = base64.b64encode(encode(response.patch)).decode("ascii")
    return encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": answer})


def refusal(reasons: list[str], warnings: list[str]) -> Response:
    """Returns the response for what was found; of many reasons and warnings, the first ones and how many more."""
    said = [each[:MAX_LENGTH] for each in dict.fromkeys(reasons)]
    beyond = len(said) - MAX_REASONS
    if beyond > 0:
        said[MAX_REASONS:] = [f"and {beyond} more"]
    return Response("; ".join(said), cut_warnings(warnings))


def cut_warnings(texts: list[str]) -> tuple[str, ...]:
    """Returns the warnings that a client shows, each once."""
    found = [each if len(each) <= MAX_LENGTH else each[: MAX_LENGTH - 3] + "..." for each in dict.fromkeys(texts)]
    beyond = len(found) - MAX_WARNINGS
    if beyond > 0:
        found[MAX_WARNINGS:] = [f"{beyond} more warnings about this object"]
    return tuple(found)


def part(data: object, *path: str) -> Object:
    """Returns the object at a path, {} if there is none of that shape."""
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def items(data: object, *path: str) -> list[Any]:
    """Returns the list at a path, [] if there is none."""
    found = part(data, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else []


def texts(data: object, *path: str) -> dict[str, str]:
    """Returns the labels or annotations at a path, without values that are no text."""
    found = part(data, *path)
    if all(isinstance(value, str) for value in found.values()):
        return found
    return {key: value for key, value in found.items() if isinstance(value, str)}


def text(data: object, *path: str) -> str:
    """Returns the text at a path, "" if there is none."""
    found = part(data, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""
