"""Identifies the version of a template by a short hash, in labels and names."""

import hashlib

import msgspec

from kubenexus.sim.controllers.types import Item

TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: never a word
_ENCODER = msgspec.json.Encoder(order="sorted")


def hash_of(template: Item, collisions: int = 0) -> str:
    """Returns ten letters that depend on the content, not on the order of fields. They differ from those of a real
    cluster."""
    said = _ENCODER.encode([template, collisions] if collisions else template)
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in hashlib.sha256(said).digest()[:10])


def without_hash(template: Item) -> Item:
    """Returns the template as the user wrote it."""
    meta = template["metadata"]
    labels = {key: value for key, value in meta.get("labels", {}).items() if key != TEMPLATE_HASH}
    return {**template, "metadata": {**meta, "labels": labels}}
