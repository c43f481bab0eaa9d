"""Strings as small numbers, so that comparing a label on every node is comparing a column of integers."""

ABSENT = 0
UNKNOWN = -1


class Interner:
    """Codes from 1 up; `ABSENT` (0) means "has no value", `UNKNOWN` (-1) "nobody has this value"."""

    __slots__ = ("_codes", "names")

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self.names: list[str] = [""]

    def __len__(self) -> int:
        return len(self.names)

    def code(self, text: str) -> int:
        """The code of `text`, given now if it has none."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.names)
            self.names.append(text)
        return code

    def find(self, text: str) -> int:
        """The code of `text`, or `UNKNOWN`. Questions never grow the table: only what nodes really carry does."""
        return self._codes.get(text, UNKNOWN)
