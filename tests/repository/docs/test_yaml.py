"""Every YAML block of the documentation is what it seems to be: read by the code that would read it, without a word."""

from typing import Any

import pytest
import yaml

from kubenexus.api.keys import SECTIONS
from kubenexus.api.keys.unknown import is_ours
from kubenexus.config import load
from kubenexus.config.v1 import KIND
from kubenexus.plugins import BUILT_IN
from kubenexus.webhook.admission import AdmissionRequest, GroupVersionKind
from kubenexus.webhook.validation import ValidationSettings, validate
from tests.repository.docs.blocks import Block, blocks

YAML = [each for each in blocks() if each.language in ("yaml", "yml")]
KNOWN = {key for section in SECTIONS for entry in section.entries for key in entry.keys}
STRICT = ValidationSettings(strict_gangs=True)


def review(data: dict[str, Any]) -> AdmissionRequest:
    group, _, version = data["apiVersion"].rpartition("/")
    kind = GroupVersionKind(group=group, version=version, kind=data["kind"])
    return AdmissionRequest(uid="u", kind=kind, operation="CREATE", namespace="ml", object=data, old_object=None)


def keys(data: object) -> list[str]:
    """The labels and annotations anywhere within a document."""
    found: list[str] = []
    if isinstance(data, dict):
        for part in ("labels", "annotations"):
            if isinstance(data.get(part), dict):
                found += [str(key) for key in data[part]]
        data = list(data.values())
    if isinstance(data, list):
        found += [each for item in data for each in keys(item)]
    return found


def test_pages_have_dozens_of_blocks() -> None:
    assert len(YAML) >= 35


@pytest.mark.parametrize("block", YAML, ids=lambda each: each.title)
def test_a_documented_block_is_accepted(block: Block) -> None:
    documents = [each for each in yaml.safe_load_all(block.text) if each is not None]
    assert documents
    for data in documents:
        if not isinstance(data, dict) or "kind" not in data:
            continue
        if data["kind"] == KIND and "# needs:" not in block.text:
            load(block.text, BUILT_IN)
        elif data["kind"] != KIND:
            found = validate(review(data), STRICT)
            assert (found.message, found.warnings) == ("", ())


@pytest.mark.parametrize("block", YAML, ids=lambda each: each.title)
def test_a_documented_key_is_a_key(block: Block) -> None:
    """Also in fragments of objects, which nothing else can read."""
    used = {key for data in yaml.safe_load_all(block.text) for key in keys(data) if is_ours(key)}
    assert used - KNOWN == set()
