"""Problems of a configuration, each with its place, in the words of kube-scheduler's validation.

A person who repairs a file wants all problems at once, in words that a search engine knows. So validation does not
raise at the first one. It walks with a `FieldPath`, which has the path so far and the list of problems.

    place["profiles"][0]["schedulerName"].required()     # profiles[0].schedulerName: Required value
"""

import difflib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from kubenexus.api.selectors import quote
from kubenexus.base.errors import KubeNexusError, truncated


class FieldError(NamedTuple):
    """A problem; `path` is empty if it concerns the whole document."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidConfiguration(KubeNexusError, ValueError):
    """A configuration that cannot be used. Its text has one line for each problem, with the `file` it is in, if any."""

    def __init__(self, problems: Iterable[FieldError], file: str = "") -> None:
        self.problems, self.file = tuple(problems), file
        super().__init__("\n".join(f"{file}: {each}" if file else str(each) for each in self.problems))


class FieldPath:
    """A place in the document, and the problems found so far, here and elsewhere."""

    __slots__ = ("found", "path")

    def __init__(self, found: list[FieldError] | None = None, path: str = "") -> None:
        self.found = [] if found is None else found
        self.path = path

    def __getitem__(self, step: str | int) -> "FieldPath":
        if isinstance(step, int):
            return FieldPath(self.found, f"{self.path}[{step}]")
        name = _harmless(truncated(step))
        return FieldPath(self.found, f"{self.path}.{name}" if self.path else name)

    def report(self, message: str) -> None:
        self.found.append(FieldError(self.path, _harmless(message)))

    def invalid(self, value: object, detail: str) -> None:
        self.report(f"Invalid value: {format_value(value)}: {detail}")

    def required(self, detail: str = "") -> None:
        self.report(f"Required value: {detail}" if detail else "Required value")

    def duplicate(self, value: object) -> None:
        self.report(f"Duplicate value: {format_value(value)}")

    def unsupported(self, value: object, supported: Iterable[str]) -> None:
        listed = ", ".join(map(quote, supported))
        self.report(f"Unsupported value: {format_value(value)}: supported values: {listed}")

    def forbidden(self, detail: str) -> None:
        self.report(f"Forbidden: {detail}")

    def hint(self, name: str, known: Iterable[str]) -> str:
        """Returns `; did you mean "..."?` if a known name is close, else ""."""
        if len(name) > 100 or len(self.found) > 100:  # comparing is slow, and so long a name is no typing error
            return ""
        plain = {each.lower(): each for each in known}
        near = difflib.get_close_matches(name.lower(), plain, n=1, cutoff=0.6)
        return f"; did you mean {quote(plain[near[0]])}?" if near else ""


def _harmless(text: str) -> str:
    """Returns the text with escapes for the characters that control a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def format_value(value: object) -> str:
    """Returns a value as part of a sentence: texts in quotation marks, everything else as JSON."""
    if isinstance(value, str):
        return quote(value)
    return truncated(msgspec.json.encode(value, enc_hook=str).decode())
