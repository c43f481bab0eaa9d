"""The objects in examples/ are allowed, without a warning."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubenexus.webhook.admission import AdmissionRequest, GroupVersionKind
from kubenexus.webhook.validation import ValidationSettings, validate

EXAMPLES = Path(__file__).parents[2] / "examples"
# Those of workloads/ are templates of another language.
FILES = sorted(file for file in EXAMPLES.rglob("*.yaml") if "workloads" not in file.parts)


def objects(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict) and isinstance(data.get("items"), list):
        for each in data["items"]:
            yield from objects(each)
    elif isinstance(data, dict) and "kind" in data and "apiVersion" in data:
        yield data


def found_in(file: Path) -> list[dict[str, Any]]:
    documents = yaml.load_all(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [each for document in documents for each in objects(document)]


def test_examples_are_found() -> None:
    assert len([file for file in FILES if found_in(file)]) > 10


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(EXAMPLES)))
def test_objects_are_allowed_without_a_warning(file: Path) -> None:
    said = {}
    for data in found_in(file):
        group, _, version = data["apiVersion"].rpartition("/")
        request = AdmissionRequest(
            uid="u",
            kind=GroupVersionKind(group=group, version=version, kind=data["kind"]),
            operation="CREATE",
            namespace=data.get("metadata", {}).get("namespace", "default"),
            object=data,
        )
        answer = validate(request, ValidationSettings(strict_gangs=True))
        if answer.message or answer.warnings:
            said[f"{data['kind']} {data['metadata'].get('name')}"] = (answer.message, answer.warnings)
    assert said == {}
