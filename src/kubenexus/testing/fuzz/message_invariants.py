"""Invariants of messages and decisions. Each function returns what is wrong, or ""."""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from kubenexus.api.codec import Unreadable
from kubenexus.api.core import Pod
from kubenexus.base.errors import Malformed, truncated
from kubenexus.framework.decision import Decision
from kubenexus.framework.verdict import Code

MAX_MESSAGE_LENGTH: Final = 4096  # no message may be longer: it has to fit into an event with a margin
_BEGINNING: Final = 100  # characters of a name that a message must contain, however long the name is
_PATH: Final = re.compile(r"[a-z][A-Za-z]*")
_GUESSED: Final = re.compile("[\ud800-\udfff\ufffd\0]")
STOPPED: Final = ("Succeeded", "Failed")
# Faults of the pod itself, in upstream's words.
_OWN_FAULT: Final = ("Invalid value: ", "Unsupported value: ", "invalid score", "not a valid label selector operator")


class Identity(msgspec.Struct, frozen=True):
    """What an untyped reader finds in the bytes: the minimum that a refusal must contain."""

    namespace: str
    name: str
    node: str = ""
    phase: str = ""
    proper: bool = True


def identity(raw: bytes) -> Identity | None:
    """Returns what a lenient reader finds, or None if the bytes are no object even then.

    `proper` is true if they are strictly JSON, so that the message must name a field.
    """
    strange: list[str] = []
    text = raw.decode("utf-8", "replace")
    try:
        data = json.loads(text, strict=False, parse_int=_number, parse_float=_number, parse_constant=strange.append)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    return Identity(
        namespace=_text(data, "metadata", "namespace"),
        name=_text(data, "metadata", "name"),
        node=_text(data, "spec", "nodeName"),
        phase=_text(data, "status", "phase"),
        proper=not strange and "\\ud" not in text and not _GUESSED.search(text),
    )


def refusal(kind: str, error: Malformed, known: Identity | None) -> str:
    """A refusal is short and names the object and the field, as far as they are readable."""
    said = str(error)
    if len(said) > MAX_MESSAGE_LENGTH:
        return f"the message is too long: {len(said):,} characters"
    if not error.subject.startswith(kind) or not error.problem:
        return f"does not say what is wrong with what: {said}"
    if known is None:
        return ""
    if known.name.strip()[:_BEGINNING] not in error.subject:
        return f"the name could be read, but is not in the message: {said}"
    if kind == "Pod" and known.namespace.strip()[:_BEGINNING] not in error.subject:
        return f"the namespace could be read, but is not in the message: {said}"
    return "" if not known.proper or _PATH.match(error.field) else f"no field is named: {said}"


def saved(found: Unreadable, known: Identity | None) -> str:
    """The node of an unreadable pod must be known whenever the bytes contain it; otherwise that node is not blocked."""
    if known is None or not known.node or known.phase in STOPPED or found.node == known.node:
        return ""
    return f"it is not known where it runs: on {truncated(known.node)!r}, but was read as on {truncated(found.node)!r}"


def decision(answer: object, pods: Iterable[Pod]) -> str:
    """`decide` always returns a decision with a sentence, and errors are only faults of the pod."""
    if not isinstance(answer, Decision):
        return f"no Decision: {answer!r}"
    said = answer.sentence()
    if not said or len(said) > MAX_MESSAGE_LENGTH * 8:
        return f"a sentence that nobody could read: {len(said):,} characters"
    if answer.code is Code.ERROR and not any(fault in answer.error for fault in _OWN_FAULT):
        return f"failed: {answer.error[:300]}"
    message = answer.diagnosis.message
    if message.startswith("Pod ") and not any(
        pod.key[:_BEGINNING] in message and _PATH.match(message.partition(": ")[2]) for pod in pods
    ):
        return f"does not name the pod and the field: {message[:300]}"
    return ""


def _number(text: str) -> int:
    return 0


def _text(data: Any, *path: str) -> str:
    """Returns the text at the end of a path; "" if there is none, or if it has characters that cannot be decoded."""
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data if isinstance(data, str) and not _GUESSED.search(data) else ""
