"""Reads a Dockerfile into stages of instructions, as far as ours needs it: ARG, FROM, WORKDIR, COPY, RUN, ENV and the
instructions that describe how the image runs. An instruction that is not known is an error, never skipped."""

import json
import re
from pathlib import Path
from typing import NamedTuple

DESCRIBING = {"USER", "EXPOSE", "ENTRYPOINT", "CMD", "ENV"}
KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", *DESCRIBING}


class Instruction(NamedTuple):
    name: str
    text: str


class Stage(NamedTuple):
    base: str
    name: str
    instructions: tuple[Instruction, ...]

    def last(self, name: str) -> str:
        """The text of the last instruction of this name."""
        return [each.text for each in self.instructions if each.name == name][-1]

    def words(self, name: str) -> list[str]:
        """The program and arguments of an instruction in exec form: no shell is needed for them."""
        return [str(word) for word in json.loads(self.last(name))]


def parse(text: str) -> list[Stage]:
    """Returns the stages. Raises ValueError for what is not known."""
    stages: list[tuple[str, str, list[Instruction]]] = []
    arguments: dict[str, str] = {}
    for each in instructions(text):
        if each.name == "ARG":
            name, _, default = each.text.partition("=")
            arguments[name] = default
        elif each.name == "FROM":
            base, _, name = each.text.partition(" AS ")
            stages.append((substituted(base, arguments), name, []))
        else:
            stages[-1][2].append(each)
    return [Stage(base, name, tuple(found)) for base, name, found in stages]


def instructions(text: str) -> list[Instruction]:
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", lines)
    found = [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]
    if unknown := [each for each in found if each.name not in KNOWN]:
        raise ValueError(f"not known: {unknown[0].name} {unknown[0].text}")
    return found


def substituted(text: str, arguments: dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda match: arguments[match.group(1)], text)


def is_in_context(path: Path, root: Path) -> bool:
    """Says whether `.dockerignore` (everything but what is named) lets a file into the context of a build."""
    lines = (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    return path.relative_to(root).parts[0] in allowed and "__pycache__" not in path.parts
