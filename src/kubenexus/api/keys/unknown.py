"""Finds keys in KubeNexus's own domains that the registry does not have: most often typing errors.

For commands and the webhook: to compare a key takes up to a millisecond.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubenexus.api.keys.entry import KeyEntry, KeyKind
from kubenexus.api.keys.values import quoted

_DOMAIN: Final = "kubenexus.io"
_SIMULATED: Final = "sim.kubenexus.io"  # read by the agents that play kubelets
_MAX_KEYS: Final = 20  # of an object that are compared
_MAX_LENGTH: Final = 317  # of a valid key


class UnknownKeys:
    """Compares keys with those that the registry has for one kind of object. Made once for a kind: to collect the known
    keys takes longer than to compare one."""

    def __init__(self, entries: Iterable[KeyEntry[Any]], kind: str) -> None:
        self._kind = kind
        self._known = frozenset(key for entry in entries if kind in entry.on for key in entry.keys)
        self._names: dict[str, dict[str, str]] = {}  # by domain: a key by its name
        for key in sorted(self._known):
            domain, _, name = key.partition("/")
            self._names.setdefault(domain, {})[name] = key

    def sentences(
        self, labels: Mapping[str, str], annotations: Mapping[str, str], *, most: int = _MAX_KEYS
    ) -> list[str]:
        """Returns a sentence for each key that no entry for this kind of object has, with the one that may be meant:
        `label 'workload.kubenexus.io/tpye' is not known on a Pod; did you mean workload.kubenexus.io/type?`"""
        unknown = [
            (where, key)
            for where, texts in ((KeyKind.LABEL, labels), (KeyKind.ANNOTATION, annotations))
            for key in texts
            if is_ours(key) and key not in self._known
        ]
        return [
            f"{where} {quoted(key)} is not known on a {self._kind}{self._hint(key)}" for where, key in unknown[:most]
        ]

    def _hint(self, key: str) -> str:
        if len(key) > _MAX_LENGTH:
            return ""
        domain, _, name = key.partition("/")
        names = self._names.get(domain, {})
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
        return f"; did you mean {names[near[0]]}?" if near else ""


def is_ours(key: str) -> bool:
    """Whether a key is in one of our domains. Those of the simulation do not count."""
    domain, slash, _ = key.partition("/")
    return bool(slash) and domain != _SIMULATED and (domain == _DOMAIN or domain.endswith(f".{_DOMAIN}"))
