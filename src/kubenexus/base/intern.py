"""Strings as small integers, so that a label is compared on all nodes by comparing a column of integers."""

from collections.abc import Iterable

ABSENT = 0
UNKNOWN = -1


class Interner:
    """Codes from 1 up; `ABSENT` (0) means "has no value", `UNKNOWN` (-1) "this value has no code"."""

    __slots__ = ("_codes", "names")

    def __init__(self, known: Iterable[str] = ()) -> None:
        """`known` are different texts: they get the codes from 1 up, in this order."""
        self.names: list[str] = ["", *known]
        self._codes: dict[str, int] = {text: code for code, text in enumerate(self.names) if code}

    def __len__(self) -> int:
        return len(self.names)

    def code(self, text: str) -> int:
        """Returns the code of `text`, and assigns one if it has none."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.names)
            self.names.append(text)
        return code

    def find(self, text: str) -> int:
        """Returns the code of `text`, or `UNKNOWN`. Lookups never grow the table."""
        return self._codes.get(text, UNKNOWN)
