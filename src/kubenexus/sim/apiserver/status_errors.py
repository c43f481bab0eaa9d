"""The errors of the server: the Status objects of a real one, with the same texts."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.apiserver.kinds import ServedKind

Json = dict[str, Any]


class StatusError(KubeNexusError):
    """Raised while a request is served; the server turns it into the response."""

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        self.code, self.reason, self.message, self.details = code, reason, message, details
        super().__init__(f"{code} {reason}: {message}")

    def status(self) -> Json:
        said: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        said["message"] = self.message
        if self.reason:
            said["reason"] = self.reason
        if self.details is not None:
            said["details"] = dict(self.details)
        said["code"] = self.code
        return said


class FieldError(NamedTuple):
    """One invalid field of an object."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


# ---- field errors ----------------------------------------------------------------------------------------------------


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: Any, why: str) -> FieldError:
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {_written(value)}: {why}")


def unsupported(field: str, value: Any, known: Iterable[str]) -> FieldError:
    listed = ", ".join(f'"{each}"' for each in known)
    return FieldError(
        field, "FieldValueNotSupported", f"Unsupported value: {_written(value)}: supported values: {listed}"
    )


def forbidden(field: str, why: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {why}")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {_written(value)}")


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def immutable(field: str, value: Any) -> FieldError:
    return invalid(field, value, "field is immutable")


def _written(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# ---- status errors ---------------------------------------------------------------------------------------------------


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def not_found(kind: ServedKind, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{kind.qualified} "{name}" not found', _who(kind, name))


def no_such_resource() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def no_containers(wish: str) -> StatusError:
    """The answer to logs, exec, attach and port-forward, since pods have no containers here."""
    return StatusError(
        501, "NotImplemented", f"pods run in name only here: there is no container to {wish} from or into"
    )


def not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def already_exists(kind: ServedKind, name: str) -> StatusError:
    return StatusError(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', _who(kind, name))


def conflict(kind: ServedKind, name: str, why: str, resource: str = "") -> StatusError:
    """Returns a conflict. `resource` is set if the message names something other than the resource: `pods/binding`, or
    the kind."""
    named = resource or kind.resource
    shown = f"{named}.{kind.group}" if kind.group else named
    details = _who(kind, name) | {"kind": named}
    return StatusError(409, "Conflict", f'Operation cannot be fulfilled on {shown} "{name}": {why}', details)


def modified(kind: ServedKind, name: str) -> StatusError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def forbidden_object(kind: ServedKind, name: str, why: str, causes: list[Json] | None = None) -> StatusError:
    details = _who(kind, name) | ({"causes": causes} if causes else {})
    subject = f'{kind.qualified} "{name}"' if name else kind.qualified
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def invalid_object(kind: ServedKind, name: str, flaws: Iterable[FieldError]) -> StatusError:
    return _invalid(kind.kind, kind.group, name, list(flaws))


def invalid_options(kind: str, *flaws: FieldError) -> StatusError:
    return _invalid(kind, "meta.k8s.io", "", list(flaws))


def needs_version(kind: ServedKind, name: str) -> StatusError:
    """Returns the error for an update without resourceVersion where one is required; its message names the resource."""
    flaw = FieldError(
        "metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0: must be specified for an update"
    )
    return _invalid(kind.resource, kind.group, name, [flaw])


def internal(message: str) -> StatusError:
    """Returns a status 500, which a real server uses here even though the client made the error."""
    return StatusError(500, "", message)


def _invalid(kind: str, group: str, name: str, flaws: list[FieldError]) -> StatusError:
    texts = list(dict.fromkeys(map(str, flaws)))
    why = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": flaw.reason, "message": flaw.message, "field": flaw.field} for flaw in flaws]
    details: Json = {"name": name} if name else {}
    details |= {"group": group} if group else {}
    details |= {"kind": kind, "causes": causes}
    shown = f"{kind}.{group}" if group else kind
    return StatusError(422, "Invalid", f'{shown} "{name}" is invalid: {why}', details)


def _who(kind: ServedKind, name: str) -> Json:
    details: Json = {"name": name} if name else {}
    details |= {"group": kind.group} if kind.group else {}
    return details | {"kind": kind.resource}
