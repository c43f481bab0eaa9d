"""Drafts of devices: facts are gathered from one source after the other, and the first source of a field counts."""

from typing import Any

import msgspec

from kubenexus.api.devices.device import Device, DeviceKind, FactSource

MAX_WARNINGS = 20  # of one node; further ones are only counted
MAX_TEXT = 256  # characters of a name, a model or an address; a longer text is not read


class Links(msgspec.Struct, gc=False):
    """What a DRA driver publishes about the links of a device; None where it publishes nothing.

    `peers` are names or numbers of directly linked devices, `hops` the distance by a device's number.
    """

    domain: str | None = None
    peers: tuple[str, ...] | None = None
    hops: dict[int, int] | None = None


class Draft:
    """A device while its facts are gathered."""

    __slots__ = ("facts", "links", "sources")

    def __init__(self, kind: DeviceKind, vendor: str, source: FactSource) -> None:
        self.facts: dict[str, Any] = {}
        self.sources: dict[str, FactSource] = {}
        self.links = Links()
        self.put("kind", kind, source)
        if vendor:
            self.put("vendor", vendor, source)

    def put(self, field: str, value: object, source: FactSource) -> None:
        """Sets a field that no better source has set."""
        if field not in self.facts:
            self.facts[field] = value
            self.sources[field] = source

    @property
    def kind(self) -> DeviceKind:
        kind: DeviceKind = self.facts["kind"]
        return kind

    @property
    def vendor(self) -> str:
        vendor: str = self.facts.get("vendor", "")
        return vendor

    def text(self, field: str) -> str:
        """Returns a field that is a text, "" if it is not set."""
        text: str = self.facts.get(field, "")
        return text

    def device(self) -> Device:
        return Device(**self.facts, sources=self.sources)


class Warnings:
    """Sentences about values that cannot be read, each once and at most `MAX_WARNINGS`."""

    __slots__ = ("_seen", "_sentences")

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}
        self._seen = 0

    def add(self, *sentences: str) -> None:
        for each in sentences:
            if each not in self._sentences:
                self._seen += 1
                if len(self._sentences) < MAX_WARNINGS:
                    self._sentences[each] = None

    def all(self) -> tuple[str, ...]:
        more = self._seen - len(self._sentences)
        return (*self._sentences, f"and {more} more values that cannot be read") if more else tuple(self._sentences)
