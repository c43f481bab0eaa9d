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


def unknown_keys(
    entries: Iterable[KeyEntry[Any]],
    kind: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    *,
    most: int = _MAX_KEYS,
) -> list[str]:
    """Returns a sentence for each key that no entry for this kind of object has, with the one that may be meant:
    `label 'workload.kubenexus.io/tpye' is not known on a Pod; did you mean workload.kubenexus.io/type?`"""
    known = {key for entry in entries if kind in entry.on for key in entry.keys}
    unknown = [
        (where, key)
        for where, texts in ((KeyKind.LABEL, labels), (KeyKind.ANNOTATION, annotations))
        for key in texts
        if is_ours(key) and key not in known
    ]
    return [f"{where} {quoted(key)} is not known on a {kind}{_hint(key, known)}" for where, key in unknown[:most]]


def is_ours(key: str) -> bool:
    """Whether a key is in one of our domains. Those of the simulation do not count."""
    domain, slash, _ = key.partition("/")
    return bool(slash) and domain != _SIMULATED and (domain == _DOMAIN or domain.endswith(f".{_DOMAIN}"))


def _hint(key: str, known: set[str]) -> str:
    if len(key) > _MAX_LENGTH:
        return ""
    domain, _, name = key.partition("/")
    names = {each.partition("/")[2]: each for each in sorted(known) if each.partition("/")[0] == domain}
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    return f"; did you mean {names[near[0]]}?" if near else ""
