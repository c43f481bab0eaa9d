"""Replaces names in a recording by keyed hashes. Equal names have equal hashes, and the key is kept nowhere.

Hashed are the names, namespaces and UIDs of objects and of their owners, images, labels and label values that KubeNexus
does not interpret, and the names of gangs, tenants, racks and the like in labels that it does. They are replaced
wherever they occur, also within keys and sentences. Annotations that no rule reads are left out. Amounts, priorities,
times and the configuration stay as they are.
"""

import hmac
import re
from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec

from kubenexus.api.gangs.levels import DEFAULT_LEVELS
from kubenexus.api.keys import KEYS, gang, network, tenant
from kubenexus.api.keys.values import Text
from kubenexus.state.object_kinds import KINDS

_TOKEN: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
# Keys of these sections whose values are names that people chose.
_NAMED: Final = frozenset(
    key
    for section in (gang.SECTION, tenant.SECTION, network.SECTION)
    for entry in section.entries
    if isinstance(entry.values, Text)
    for key in entry.keys
)
_WORDS: Final = """
    cpu memory pods storage ephemeral-storage gpu hugepages hugepages-1Gi hugepages-2Mi attachable-volumes default
    kube-system kube-public true false gold silver bronze node nodes pod gang workload gated left amd64 arm64 linux
    """
_LABELS: Final = ("labels", "matchLabels", "nodeSelector")
_OF_REQUIREMENTS: Final = frozenset({"operator", "values", "effect"})  # of requirements, taints and tolerations
_INTERPRETED: Final = ("kubernetes.io/", "k8s.io/", "kubenexus.io/")  # domains of keys that have a meaning


class Anonymiser:
    """Replaces names. `secret` is the key of the hashes; `words` are further names that stay, such as of profiles."""

    def __init__(self, secret: bytes, words: Collection[str] = ()) -> None:
        self._secret = secret
        self._known: dict[str, str] = {}
        self._words = {*_WORDS.split(), *words, *KINDS, *(level.name for level in DEFAULT_LEVELS)}
        self._words |= {token for key in (*KEYS, *KINDS) for token in _TOKEN.findall(key)}

    def replaced(self, about: str, content: Any) -> tuple[str, Any]:
        """Returns what an entry is about and its content, as plain data, with all names replaced."""
        tree = msgspec.to_builtins(content, builtin_types=(bytes, bytearray, memoryview))
        self._learn(tree)
        return self._text(about), self._walk(tree)

    # --- names --------------------------------------------------------------------------------------------------------

    def _learn(self, tree: Any) -> None:
        """Finds the names in an object, or in an entry that has objects."""
        if isinstance(tree, list):
            for each in tree:
                self._learn(each)
        if not isinstance(tree, dict):
            return
        meta = tree.get("metadata")
        if isinstance(meta, dict):
            self._names(meta.get(name) for name in ("name", "namespace", "uid"))
            for owner in meta.get("ownerReferences", ()):
                self._names(owner.get(name) for name in ("name", "uid"))
        for name, value in tree.items():
            if name in _LABELS and isinstance(value, dict):
                self._learn_labels(value.items())
            elif name in ("nodeName", "nominatedNodeName", "image"):
                self._names([value])
            elif name == "images":
                self._names(each for image in value for each in image.get("names", ()))
            else:
                self._learn(value)
        if isinstance(tree.get("key"), str) and not tree.keys().isdisjoint(_OF_REQUIREMENTS):
            values = tree.get("values") or ([tree["value"]] if isinstance(tree.get("value"), str) else [])
            self._learn_labels((tree["key"], each) for each in values or [""])

    def _learn_labels(self, labels: Iterable[tuple[str, str]]) -> None:
        for key, value in labels:
            if key in _NAMED or key not in KEYS:
                self._names([value])
            if key not in KEYS and not any(domain in key for domain in _INTERPRETED):
                self._names([key])

    def _names(self, names: Iterable[Any]) -> None:
        for name in names:
            if not isinstance(name, str) or name in self._known or not _is_name(name) or name in self._words:
                continue
            digest = hmac.new(self._secret, name.encode("utf-8", "surrogatepass"), sha256).hexdigest()
            self._known[name] = f"x{digest[:15]}"

    # --- replacing ----------------------------------------------------------------------------------------------------

    def _walk(self, tree: Any, under: str = "") -> Any:
        if isinstance(tree, str):
            return self._text(tree)
        if isinstance(tree, list | tuple):
            return [self._walk(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        if under == "annotations":
            return {key: self._text(value) for key, value in tree.items() if key in KEYS}
        return {self._text(key) if under else key: self._walk(value, _child(key, value)) for key, value in tree.items()}

    def _text(self, text: str) -> str:
        found = self._known.get(text)
        return found if found is not None else _TOKEN.sub(self._token, text)

    def _token(self, match: re.Match[str]) -> str:
        return self._known.get(match[0], match[0])


def _is_name(text: str) -> bool:
    """Whether a text is worth a hash. Numbers stay: they are also amounts in sentences."""
    return bool(text) and not text.isdecimal() and not any(domain in text for domain in _INTERPRETED)


def _child(key: str, value: Any) -> str:
    """Returns `key` if the keys of the dict below it are data, and not names of fields."""
    return key if isinstance(value, dict) and key in (*_LABELS, "annotations", "nodes", "amounts") else ""
