"""Metadata: the fields that the server sets on create and protects on update."""

import random

from kubenexus.base.clock import Clock
from kubenexus.base.timestamps import format_time
from kubenexus.sim.apiserver.status_errors import FieldError, Json, immutable

# No vowels and no characters that look alike: a generated name is never a word.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
# The bits of a UUID that hold its version and variant, and their values for random UUIDs (RFC 9562, version 4).
_FIXED = 0xF000 << 64 | 0xC000 << 48
_VERSION_4 = 0x4000 << 64 | 0x8000 << 48
_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")


class MetadataSource:
    """Produces times, uids and name suffixes from an injected clock and random generator."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self.clock, self.rng = clock, rng
        self._second = -1
        self._text = ""

    def now(self) -> str:
        """Returns the time in whole seconds; formatted once a second."""
        second = int(self.clock.now())
        if second != self._second:
            self._second, self._text = second, format_time(second)
        return self._text

    def later(self, seconds: int) -> str:
        return format_time(int(self.clock.now()) + seconds)

    def uid(self) -> str:
        text = f"{(self.rng.getrandbits(128) & ~_FIXED) | _VERSION_4:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def suffix(self) -> str:
        return "".join(self.rng.choices(_LETTERS, k=5))


def born(meta: Json, stamps: MetadataSource) -> None:
    """Sets the fields of a new object that a client cannot choose."""
    for key in (*_SYSTEM, "resourceVersion"):
        meta.pop(key, None)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"] + stamps.suffix()
    meta["uid"] = stamps.uid()
    meta["creationTimestamp"] = stamps.now()


def tidied(meta: Json) -> None:
    """Removes empty labels, annotations, finalizers and owner references."""
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if key in meta and not meta[key]:
            del meta[key]


def kept(meta: Json, old: Json) -> None:
    """Restores fields that an update cannot change and that are ignored silently; `check_change` reports the others."""
    for key in _SYSTEM:
        if key != "uid":
            meta.pop(key, None)
        if key in old:
            meta.setdefault(key, old[key])
    if old.get("generateName"):
        meta["generateName"] = old["generateName"]
    else:
        meta.pop("generateName", None)
    if "managedFields" in old:
        meta.setdefault("managedFields", old["managedFields"])


def check_change(meta: Json, old: Json) -> list[FieldError]:
    flaws = []
    if meta.get("uid") != old.get("uid"):
        flaws.append(immutable("metadata.uid", meta.get("uid", "")))
    new = [each for each in meta.get("finalizers") or () if each not in (old.get("finalizers") or ())]
    if old.get("deletionTimestamp") and new:
        shown = ", ".join(f'"{each}"' for each in new)
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        flaws.append(FieldError("metadata.finalizers", "FieldValueForbidden", f"Forbidden: {why}"))
    return flaws
