"""What the documentation shows: the blocks of code of each page, and the commands in them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
FOLDERS = ("docs", "examples", "deploy")
# Decisions of the past show what was, not what is.
PAST = ROOT / "docs" / "adr"
PAGES = sorted({*ROOT.glob("*.md"), *(page for each in FOLDERS for page in (ROOT / each).rglob("*.md"))})
PAGES = [page for page in PAGES if page.parent != PAST]
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHELL = {"sh", "bash", "shell"}
# A command in a session begins with the prompt; a line without one is what it prints.
PROMPT = "$ "


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str

    @property
    def title(self) -> str:
        return f"{self.page}:{self.line}"


class Command(NamedTuple):
    block: Block
    words: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.block.title} {' '.join(self.words)[:60]}"


def blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield Block(str(page.relative_to(ROOT)), line, match["language"], match["text"])


def commands() -> Iterator[Command]:
    """Every command that a page tells to run: lines of shell blocks, and lines with a prompt in any other block."""
    for block in blocks():
        for line in shell_lines(block):
            for words in simple_commands(line):
                yield Command(block, words)


def shell_lines(block: Block) -> list[str]:
    text = block.text.replace("\\\n", " ")
    if block.language in SHELL:
        return joined([line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")])
    return [line.removeprefix(PROMPT) for line in text.splitlines() if line.startswith(PROMPT)]


def joined(lines: list[str]) -> list[str]:
    """Lines, of which one that ends within quotes goes on in the next."""
    whole: list[str] = []
    for line in lines:
        if whole and is_open(whole[-1]):
            whole[-1] += f"\n{line}"
        else:
            whole.append(line)
    return whole


def is_open(line: str) -> bool:
    try:
        list(simple_commands(line))
    except ValueError:
        return True
    return False


def simple_commands(line: str) -> Iterator[tuple[str, ...]]:
    """The commands of a line, without variables before them, redirections, and what runs in the background."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    skip = False
    for word in [*lexer, ";"]:
        if word in ("|", "&", "&&", "||", ";"):
            if words:
                yield tuple(words)
            words = []
        elif word in (">", ">>", "<", "2>"):
            skip = True
        elif skip:
            skip = False
        elif words or not re.match(r"^[A-Z_]+=", word):
            words.append(word)
