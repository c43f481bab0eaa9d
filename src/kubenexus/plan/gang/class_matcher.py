"""Which members are of one class, told without signing each.

A thousand members of a gang mostly come from one template, and differ in what nobody asks about: their names, and a
label that numbers them. To sign one takes several times as long as to hold it against another.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from kubenexus.api.core import Pod, PodSpec
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.extension_points import PinsNodes
from kubenexus.framework.plugin_results import FAILURES, reraise_interrupts
from kubenexus.framework.pod_signature import is_label, resize_status
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.volumes.pod_volumes import has_scheduled_volumes

MOST: Final = 8  # kinds with one spec that a pod is held against

T = TypeVar("T")
Ask = Callable[[Pod, NodeColumns], Any]
_encode = msgspec.json.encode  # which has numbers of any size: a quantity may be one


class _KnownClass(msgspec.Struct, Generic[T], gc=False):
    """A pod, and what is known of its class. `told`: labels and owners tell all that plugins say of pods with this
    spec. Else they have to be asked (`asks`) about each; `said` is what they say of this one, once it was asked."""

    pod: Pod
    what: T
    told: bool
    asks: list[Ask]
    said: list[tuple[Ask, Any]] | None = None


class ClassMatcher(Generic[T]):
    """Pods of different classes as they turn up, each with something that goes for its whole class. Of use while the
    cluster stays as it is."""

    def __init__(self, class_cache: ClassCache, columns: NodeColumns) -> None:
        self._profile_plugins, self._columns = class_cache.profile_plugins, columns
        self._known: dict[int, tuple[PodSpec, list[_KnownClass[T]]]] = {}  # by address, with the spec itself
        self._encoded: dict[bytes, list[_KnownClass[T]]] = {}
        self._last: tuple[PodSpec, list[_KnownClass[T]]] = (PodSpec(), [])
        asked, traits = (
            (*self._profile_plugins.signs_without_volumes, *self._profile_plugins.pins),
            self._profile_plugins.traits,
        )
        # One from elsewhere may look at a pod's name, or at anything else.
        self._ours = all(traits[plugin.name].trusted for plugin in asked)
        self._labelled = any(is_label(field) for field in self._profile_plugins.reads)

    def add(self, pod: Pod, what: T) -> None:
        """A pod that is of no kind so far, and has been signed."""
        if resize_status(pod.status) is not None:  # of a pod that waits no kubelet has said anything
            return
        mounts, pinned = has_scheduled_volumes(pod), pod.spec.affinity is not None or not self._ours
        signs = self._profile_plugins.signs if mounts else self._profile_plugins.signs_without_volumes
        asks = [*[each.sign for each in signs], *[_pinned_by(each) for each in self._profile_plugins.pins if pinned]]
        alike = self._with_spec(pod.spec)
        alike.insert(0, _KnownClass(pod, what, self._ours and not mounts, asks))  # a claim may be named after its pod
        del alike[MOST:]

    def find(self, pod: Pod) -> T | None:
        """What goes for the class of a pod, if that is equal to one before in all that a class is made of (see
        `ClassCache.lookup`). None more often than it would have to be."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        last, kinds = self._last
        for kind in kinds if spec is last else self._with_spec(spec):
            first = kind.pod
            if status is not first.status and status != first.status and resize_status(status) is not None:
                continue
            other = first.metadata
            if meta.namespace != other.namespace:
                continue
            if meta.labels == other.labels:
                if kind.told and meta.owner_references == other.owner_references:
                    return kind.what
            elif self._labelled:
                continue
            if self._same(pod, kind):
                return kind.what
        return None

    def _same(self, pod: Pod, kind: _KnownClass[T]) -> bool:
        """Whether plugins say the same of both. A failure is reported when the pod is looked up by itself."""
        columns = self._columns
        try:
            if kind.said is None:
                kind.said = [(ask, ask(kind.pod, columns)) for ask in kind.asks]
            for ask, said in kind.said:  # a generator would take longer
                if ask(pod, columns) != said:
                    return False
        except FAILURES as error:
            reraise_interrupts(error)
            return False
        return True

    def _with_spec(self, spec: PodSpec) -> list[_KnownClass[T]]:
        """The kinds with this spec, however many others there are. Pods that came by the feed share it, so that it is
        found by its address; others mostly come in a row."""
        last, kinds = self._last
        known = self._known.get(id(spec))
        if known is None:
            if spec == last:
                return kinds
            known = self._known[id(spec)] = (spec, self._encoded.setdefault(_encode(spec), []))
        self._last = known
        return known[1]


def _pinned_by(plugin: PinsNodes) -> Ask:
    return lambda pod, columns: plugin.node_names(pod)
