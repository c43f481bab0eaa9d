"""What plugins sign for the pods of one template, remembered.

A plugin with `signs_template = True` signs only what pods of one template have in common: their spec, the kinds of
their owners, their tenant, the resources that device classes back, whether nodes report NUMA nodes, and labels and
annotations with keys of the registry. So it is called for the first of them, and a dozen such plugins cost as much for
each further pod as one.
"""

from typing import Any, Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.keys import KEYS, SECTIONS
from kubenexus.api.keys.values import OneOf, Present
from kubenexus.api.meta import OwnerReference
from kubenexus.base.identity_memo import IdentityMemo
from kubenexus.state.nodes import NodeColumns

MAX_WEIGHT: Final = 8192  # KiB of all templates: the memory outlives their pods
_KIB: Final = 1024
MAX_TEMPLATE: Final = 64  # KiB of a template that is remembered; most have one or two
_MAX_TEXT: Final = 4096  # characters of labels and annotations of a pod that is remembered: they may have 256 Ki
_MAX_NAME: Final = 128  # characters of the kind of an owner; no kind that a plugin knows is as long
_MAX_OWNERS: Final = 16
_FEW_TEXTS: Final = 64

_NONE_OF_THEM: Final = "?"  # stands for any text that is none of the words of its key


def _known_words() -> dict[str, frozenset[str]]:
    """Returns the words that plugins can distinguish, for keys with a few words; no words for marks, of which only the
    presence counts. Members of a gang may be numbered by a mark, and have any text in place of a word."""
    found: dict[str, frozenset[str]] = {}
    others: set[str] = set()
    for entry in [entry for section in SECTIONS for entry in section.entries]:
        values = entry.values
        for spelling in entry.spellings:
            if isinstance(values, Present):
                words = frozenset[str]()
            elif isinstance(values, OneOf):
                words = frozenset([*values.words, *values.also, *spelling.says])
            else:
                others.add(spelling.key)
                continue
            found[spelling.key] = found.get(spelling.key, words) | words
    return {key: words for key, words in found.items() if key not in others}


_WORDS: Final = _known_words()
_encode = msgspec.json.Encoder().encode
Texts = tuple[tuple[str, str], ...]
Signed = dict[str, Any]


class TemplateSignatures:
    """What the plugins of one profile signed, by template."""

    def __init__(self) -> None:
        self._known: IdentityMemo[Signed] = IdentityMemo(MAX_WEIGHT)

    def __len__(self) -> int:
        return len(self._known)

    def find(self, pod: Pod, variant: Any) -> Signed | None:
        """Returns what was put in for a pod with the same spec object and an equal variant."""
        return None if variant is None else self._known.get(pod.spec, variant)

    def put(self, pod: Pod, variant: Any, signed: Signed) -> None:
        if variant is not None:
            weight = 1 + len(_encode(pod.spec)) // _KIB
            if weight <= MAX_TEMPLATE:
                self._known.put(pod.spec, signed, weight, variant)


def variant_of(pod: Pod, columns: NodeColumns) -> Any:
    """Returns all that such a plugin may sign besides the spec, as a key; None if it is too long to be remembered."""
    meta = pod.metadata
    owners = meta.owner_references
    labels = _registered(meta.labels) if meta.labels else ()
    annotations = _registered(meta.annotations) if meta.annotations else ()
    if annotations and sum([len(text) for _, text in annotations]) > _MAX_TEXT:  # a label has 63 characters at most
        return None
    own: Any = ()
    if len(owners) == 1:
        own = _owner(owners[0])
    elif owners:
        own = tuple([_owner(each) for each in owners[:_MAX_OWNERS]])
    demand = columns.demand
    on_gpu_nodes = demand is not None and demand.on_gpu_nodes
    states_tier = demand is not None and columns.tenants.states_tier(pod)
    tenant = columns.tenants.of(pod)
    resources, numa = columns.device_class_resources, columns.numa.any
    return tenant, labels, annotations, own, resources, on_gpu_nodes, states_tier, numa


def _owner(owner: OwnerReference) -> tuple[str, str, bool]:
    return owner.kind[:_MAX_NAME], owner.api_version[:_MAX_NAME], owner.controller


def _registered(texts: dict[str, str]) -> Texts:
    """Returns the texts with keys of the registry, in an order that does not depend on that of the object."""
    if len(texts) > _FEW_TEXTS:
        # By our keys: a pod may have a hundred thousand of its own.
        found = [(key, _distinct(key, texts[key])) for key in KEYS if key in texts]
    else:
        found = [(key, _distinct(key, text)) for key, text in texts.items() if key in KEYS]
    if len(found) > 1:
        found.sort()
    return tuple(found)


def _distinct(key: str, text: str) -> str:
    """Returns the text as far as plugins can distinguish it from others of the key."""
    words = _WORDS.get(key)
    if words is None or not text.strip():
        return text
    return text if text.strip().lower() in words else _NONE_OF_THEM
