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

Texts = tuple[tuple[str, str], ...]
Signed = dict[str, Any]


class TemplateSignatures:
    """What the plugins of one profile signed, by template."""

    def __init__(self) -> None:
        self._known: IdentityMemo[Signed] = IdentityMemo(MAX_WEIGHT)

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
    labels, annotations = meta.labels, meta.annotations
    said = [(key, labels[key]) for key in _KEYS.intersection(labels)] if labels else []
    wished = [(key, annotations[key]) for key in _KEYS.intersection(annotations)] if annotations else []
    if wished and sum([len(text) for _, text in wished]) > _MAX_TEXT:  # a label has 63 characters at most
        return None
    owners = meta.owner_references
    if len(owners) == 1:
        own: Any = (owners[0].kind, owners[0].api_version, owners[0].controller)
    else:
        own = tuple([(each.kind, each.api_version, each.controller) for each in owners[:_MAX_OWNERS]])
    said.sort()
    wished.sort()
    return columns.tenants.of(pod), tuple(said), tuple(wished), own
