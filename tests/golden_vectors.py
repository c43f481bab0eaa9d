"""Golden vectors: answers of the first KubeNexus and ours, checked by tests and rendered as pages by `make docs`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DOCS = Path(__file__).parents[1] / "docs"


class Vector(NamedTuple):
    """A case, the answer of the first KubeNexus, ours, and the id of the bug if they differ."""

    case: str
    compute: Callable[[], str]
    before: str
    ours: str
    bug: str = ""


Sections = Mapping[str, Sequence[Vector]]


def render_page(head: str, sections: Sections, bugs: Mapping[str, str]) -> str:
    """Returns the page: a table for each section, and one of the bugs."""
    parts = [head]
    for title, vectors in sections.items():
        parts.append(f"\n## {title}\n\n| case | before | ours | bug |\n|---|---|---|---|\n")
        parts += [f"| {each.case} | {each.before} | {each.ours} | {each.bug} |\n" for each in vectors]
    parts.append("\n## The bugs\n\n| | |\n|---|---|\n")
    parts += [f"| {name} | {text} |\n" for name, text in bugs.items()]
    return "".join(parts)


def vector_params(sections: Sections) -> list[Any]:
    """Returns the vectors as parameters of a test."""
    return [
        pytest.param(vector, id=f"{section.partition(':')[0]}, {vector.case}")
        for section, vectors in sections.items()
        for vector in vectors
    ]


def check_vector(vector: Vector, bugs: Mapping[str, str]) -> None:
    """Raises AssertionError unless the vector is reproduced, or a change with the id of a bug."""
    assert vector.compute() == vector.ours
    assert (vector.before == vector.ours) == (vector.bug == ""), "a difference, and only that, has the id of a bug"
    assert vector.bug in ("", *bugs)


def check_page(page: str, rendered: str, sections: Sections, bugs: Mapping[str, str]) -> None:
    """Raises AssertionError unless each bug has a vector and the page in docs/ is up to date."""
    assert {vector.bug for vectors in sections.values() for vector in vectors} - {""} == bugs.keys()
    assert (DOCS / page).read_text(encoding="utf-8") == rendered, "run `make docs`"
