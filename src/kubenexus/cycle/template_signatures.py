"""What plugins sign for the pods of one template, remembered.

A plugin with `signs_template = True` signs only what pods of one template have in common: their spec, the kinds of
their owners, their tenant, and labels and annotations with keys of the registry. So it is called for the
first of them, and a dozen such plugins cost as much for each further pod as one.
"""

from typing import Any, Final

from kubenexus.api.core import Pod
from kubenexus.api.keys import SECTIONS
from kubenexus.base.identity_memo import IdentityMemo
from kubenexus.framework.pod_limits import count_entries
from kubenexus.state.nodes import NodeColumns

_KEYS: Final = frozenset[str]().union(*(entry.keys for section in SECTIONS for entry in section.entries))
MAX_WEIGHT: Final = 4096  # templates; one with many entries counts as several
_ENTRIES: Final = 16  # of a spec that weigh as much as the template itself
_MAX_TEXT: Final = 4096  # characters of labels and annotations of a pod that is remembered: they may have 256 Ki
_MAX_OWNERS: Final = 16
_FEW_TEXTS: Final = 64

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
            weight = 1 + sum(count_entries(pod).values()) // _ENTRIES
            self._known.put(pod.spec, signed, weight, variant)


def variant_of(pod: Pod, columns: NodeColumns) -> Any:
    """Returns all that such a plugin may sign besides the spec, as a key; None if it is too long to be remembered."""
    meta = pod.metadata
    owners, labels, annotations = meta.owner_references, _registered(meta.labels), _registered(meta.annotations)
    if annotations and sum([len(text) for _, text in annotations]) > _MAX_TEXT:  # a label has 63 characters at most
        return None
    if len(owners) == 1:
        owner = owners[0]
        own: Any = (owner.kind, owner.api_version, owner.controller)
    else:
        own = tuple([(each.kind, each.api_version, each.controller) for each in owners[:_MAX_OWNERS]])
    return columns.tenants.of(pod), labels, annotations, own


def _registered(texts: dict[str, str]) -> Texts:
    """Returns the texts with keys of the registry, in an order that does not depend on that of the object."""
    if len(texts) > _FEW_TEXTS:
        found = [(key, texts[key]) for key in _KEYS if key in texts]  # a pod may have a hundred thousand
    else:
        found = [each for each in texts.items() if each[0] in _KEYS]
    if len(found) > 1:
        found.sort()
    return tuple(found)
