"""What plugins sign for the pods of one template, remembered.

A plugin with `signs_template = True` signs only what pods of one template have in common: their spec, the kinds of
their owners, their tenant, the resources that device classes back, whether nodes report NUMA nodes, and labels and
annotations with keys of the registry. So it is called for the first of them, and a dozen such plugins cost as much for
each further pod as one.

Most pods of a template have all labels, annotations and owners of the pod before them. For these the registry is not
asked which of the texts count: 1 us instead of 4 to 7.
"""

from typing import Any, Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod, PodSpec
from kubenexus.api.keys import KEYS, SECTIONS
from kubenexus.api.keys.values import OneOf, Present
from kubenexus.api.meta import ObjectMeta, OwnerReference
from kubenexus.base.identity_memo import IdentityMemo
from kubenexus.state.demand import Demand
from kubenexus.state.nodes import NodeColumns

MAX_WEIGHT: Final = 8192  # KiB of all templates: the memory outlives their pods
_KIB: Final = 1024
MAX_TEMPLATE: Final = 64  # KiB of a template that is remembered; most have one or two
_MAX_TEXT: Final = 4096  # characters of labels and annotations of a pod that is remembered: they may have 256 Ki
_MAX_NAME: Final = 128  # characters of the kind of an owner; no kind that a plugin knows is as long
_MAX_OWNERS: Final = 16
_FEW_TEXTS: Final = 64
_MAX_RECENT: Final = 256  # templates whose last pod is remembered with its texts

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


class _Recent(NamedTuple):
    """The last pod of a template: what its signatures follow from, and these. The parts are compared, so they are the
    pod's own objects."""

    spec: PodSpec
    meta: ObjectMeta
    tenants: int
    resources: frozenset[str]
    demand: Demand | None
    numa: bool
    signed: Signed


class TemplateSignatures:
    """What the plugins of one profile signed, by template."""

    def __init__(self) -> None:
        self._known: IdentityMemo[Signed] = IdentityMemo(MAX_WEIGHT)
        self._recent: dict[int, _Recent] = {}
        self._columns: NodeColumns | None = None  # those of the recent pods

    def __len__(self) -> int:
        return len(self._known)

    def of_pod_before(self, pod: Pod, columns: NodeColumns) -> Signed | None:
        """Returns what was kept for a pod of the same template, if nothing tells the two apart by which plugins sign.
        Pods do not change, nor do their texts."""
        known = self._recent.get(id(pod.spec))
        if known is None or columns is not self._columns:
            return None
        _, before, tenants, resources, demand, numa, signed = known
        meta = pod.metadata
        if (
            meta.labels == before.labels
            and meta.annotations == before.annotations
            and meta.namespace == before.namespace
            and meta.owner_references == before.owner_references
            and columns.tenants.version == tenants
            and columns.device_class_resources is resources
            and columns.demand is demand
            and columns.numa.any is numa
        ):
            return signed
        return None

    def keep(self, pod: Pod, columns: NodeColumns, signed: Signed) -> None:
        """Keeps what was signed for the pods after this one. Not if it has many or long texts, which take as long to
        compare as to look up, or several owners."""
        meta = pod.metadata
        if len(meta.labels) > _FEW_TEXTS or len(meta.annotations) > _FEW_TEXTS:
            return
        owners = meta.owner_references
        if len(owners) > 1 or (owners and len(owners[0].kind) + len(owners[0].api_version) > _MAX_NAME):
            return
        if meta.annotations and sum(map(len, meta.annotations.values())) > _MAX_TEXT:
            return
        if columns is not self._columns or len(self._recent) >= _MAX_RECENT:
            self._recent, self._columns = {}, columns
        resources, demand, numa = columns.device_class_resources, columns.demand, columns.numa.any
        self._recent[id(pod.spec)] = _Recent(pod.spec, meta, columns.tenants.version, resources, demand, numa, signed)

    def find(self, pod: Pod, variant: Any) -> Signed | None:
        """Returns what was put in for a pod with the same spec object and an equal variant."""
        return None if variant is None else self._known.get(pod.spec, variant)

    def put(self, pod: Pod, variant: Any, signed: Signed) -> bool:
        """Returns whether it is remembered: not for long texts or a large template."""
        weight = MAX_TEMPLATE + 1 if variant is None else 1 + len(_encode(pod.spec)) // _KIB
        if weight > MAX_TEMPLATE:
            return False
        self._known.put(pod.spec, signed, weight, variant)
        return True


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
