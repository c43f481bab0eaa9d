"""Finds which affinity terms of existing pods select a given pod.

A pod's class depends on the terms that select the pod, not on its labels. A term for another namespace does not concern
the pod, and an Exists term treats all pods with the label alike. A signature by the labels that terms mention would let
one tenant's term split every other tenant's pods, each numbered pod into a class of its own.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import count, islice

import msgspec

from kubenexus.api.selectors import NOTHING, Operator
from kubenexus.state.affinity_terms import AffinityTerm, PodSelectorTerm

# Terms checked for one pod: 0.1 ms. With more of them a class depends on labels, not on terms: these are then counted
# together (`state.selected_terms`), and a further one does not change the class of every pod that it selects.
MAX_TERMS_CHECKED = 128
OTHER_VALUE = "\0"  # replaces all values of a label that no term names; no label can have it
_MAX_REMEMBERED = 4_096
_MAX_MOVES = 2_048
_MAX_EMPTIED = 256

Label = tuple[str, str]
Reduced = tuple[tuple[str, str | None], ...]
# The tokens of the terms that select a pod; or, if too many terms may, the labels as far as terms distinguish them.
SelectorValues = tuple[str, ...] | dict[str, str]
_encoder = msgspec.msgpack.Encoder(order="deterministic")


class _TermUse(msgspec.Struct, gc=False):
    """A term, the number of pods that carry it, and its token in signatures. The token is a hash of the term, so a
    class is found again after a trial placement was rolled back."""

    carried: AffinityTerm
    token: str
    uses: int = 0


class _TermsOfScope:
    """Terms about the same namespaces. Equal marks mean equal terms; mark 0 means no terms. Changes that are undone in
    reverse order, as after each trial placement or removal, restore the mark."""

    __slots__ = ("_by_label", "_marks", "_moves", "mark", "size", "values")

    def __init__(self, marks: Iterator[int]) -> None:
        self.mark = self.size = 0
        # By key: how many terms name a value; None: how many use the key.
        self.values: dict[str, dict[str | None, int]] = {}
        self._marks = marks
        # By one label that a pod needs to be selected; None: no such label.
        self._by_label: dict[Label | None, dict[str, _TermUse]] = {}
        # By mark, token and change: the mark that followed. The newest last.
        self._moves: dict[tuple[int, str, int], int] = {}

    def change(self, known: _TermUse, by: int) -> None:
        """Adds a term (+1) or removes it (-1)."""
        for wanted in known.carried.term.selector.requirements:
            named = self.values.setdefault(wanted.key, {})
            for value in (None, *wanted.values):
                named[value] = named.get(value, 0) + by
                if not named[value]:
                    del named[value]
            if not named:
                del self.values[wanted.key]
        for label in _needed(known.carried.term):
            alike = self._by_label.setdefault(label, {})
            if by > 0:
                alike[known.token] = known
            elif len(alike) > 1:
                del alike[known.token]
            else:
                del self._by_label[label]
        self.size += by
        self._note(known.token, by)

    def _note(self, token: str, by: int) -> None:
        before = self.mark
        after = self._moves.get((before, token, by)) if self.size else 0
        if after is None:
            after = next(self._marks)
        if len(self._moves) >= _MAX_MOVES:
            for old in list(islice(self._moves, _MAX_MOVES // 2)):
                del self._moves[old]
        self._moves[before, token, by], self._moves[after, token, -by] = after, before
        self.mark = after

    def reduced(self, labels: Mapping[str, str]) -> Reduced:
        """Returns the labels as far as these terms distinguish them, at a cost independent of the number of terms."""
        values = self.values
        if not values:
            return ()
        return tuple([(key, value if value in values[key] else None) for key, value in labels.items() if key in values])

    def candidates(self, labels: Mapping[str, str]) -> Iterator[_TermUse]:
        """Yields the terms that may select a pod with these labels."""
        for label in (None, *labels.items()):
            yield from self._by_label.get(label, {}).values()


_NONE = _TermsOfScope(count(1))


class ExistingTerms:
    """All affinity terms of existing pods. Only `PodColumns` writes here. `namespaces` holds the labels of the known
    namespaces."""

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._namespaces = namespaces
        self._marks = count(1)
        self._known: dict[AffinityTerm, _TermUse] = {}
        self._named: dict[str, _TermsOfScope] = {}  # by namespace: terms that list it
        self._emptied: dict[str, _TermsOfScope] = {}  # without terms now, the newest last
        self._selecting = _TermsOfScope(self._marks)  # terms that select namespaces by label
        self._relabelled: dict[str, int] = {}  # by namespace: the mark of its last change of labels
        self._remembered: dict[tuple[object, ...], SelectorValues] = {}

    def __len__(self) -> int:
        return len(self._known)

    def change(self, carried: AffinityTerm, by: int) -> str:
        """Adds a carrier of the term (+1) or removes one (-1), and returns its token. The cost does not depend on other
        terms, since each workload may carry a term of its own."""
        known = self._known.get(carried)
        if known is None:
            known = self._known[carried] = _TermUse(carried, _token(carried))
        known.uses += by
        if known.uses == 0:
            del self._known[carried]
        if known.uses == 0 or known.uses == by == 1:
            self._place(known, by)
        return known.token

    def _place(self, known: _TermUse, by: int) -> None:
        term = known.carried.term
        if term.selector.nothing:
            return
        if term.namespace_selector != NOTHING:
            self._selecting.change(known, by)
        for namespace in term.namespaces:
            asked = self._named.get(namespace)
            if asked is None:
                asked = self._named[namespace] = self._emptied.pop(namespace, _TermsOfScope(self._marks))
            asked.change(known, by)
            if not asked.size:
                self._empty(namespace)

    def _empty(self, namespace: str) -> None:
        """Sets aside the terms of a namespace that has none. They are used again if the removal was on trial: the marks
        are then restored."""
        while len(self._emptied) >= _MAX_EMPTIED:
            del self._emptied[next(iter(self._emptied))]
        self._emptied[namespace] = self._named.pop(namespace)

    def namespace_changed(self, name: str, *, fresh: bool) -> None:
        """Handles other labels of a namespace, or its deletion. `fresh`: the namespace was not known before."""
        self._remembered.clear()
        if name not in self._namespaces:
            self._relabelled.pop(name, None)
        elif not fresh or self._selecting.size:
            self._relabelled[name] = next(self._marks)

    def scope(self, namespace: str) -> tuple[int, ...]:
        """Returns marks of the terms that may select pods of this namespace, empty if there are none. While they are
        equal, `about` returns equal results."""
        asked, selecting = self._named.get(namespace, _NONE), self._selecting
        marks = (asked.mark, selecting.mark, self._relabelled.get(namespace, 0))
        return marks if any(marks) else ()

    def token(self, carried: AffinityTerm) -> str:
        """Returns the token of a term in signatures, or "" if no pod carries the term."""
        known = self._known.get(carried)
        return "" if known is None else known.token

    def about(self, namespace: str, labels: Mapping[str, str]) -> SelectorValues:
        """Returns the terms that select a pod, as `SelectorValues`. The cache key holds only what terms can
        distinguish, so a pod with a label value of its own shares its siblings' entry."""
        named, selecting = self._named.get(namespace, _NONE), self._selecting
        if not named.size and not selecting.size:
            return ()
        seen = (named.reduced(labels), selecting.reduced(labels))
        key = (namespace, named.mark, selecting.mark, *seen)
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            found = self._remembered[key] = self._about(namespace, labels, seen)
        return found

    def _about(self, namespace: str, labels: Mapping[str, str], seen: tuple[Reduced, Reduced]) -> SelectorValues:
        found, known = set[str](), self._namespaces.get(namespace, {})
        for number, each in enumerate(self._candidates(namespace, labels)):
            if number == MAX_TERMS_CHECKED:
                return _visible(labels, seen)
            if _means(each, namespace, known, labels):
                found.add(each.token)
        return tuple(sorted(found))

    def _candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[_TermUse]:
        for asked in (self._named.get(namespace, _NONE), self._selecting):
            yield from asked.candidates(labels)


def _means(each: _TermUse, namespace: str, known: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Returns whether a term selects such a pod. An unknown namespace has no labels, as upstream."""
    term = each.carried.term
    return term.covers(namespace, known) and term.selector.matches(labels)


def _visible(labels: Mapping[str, str], seen: tuple[Reduced, Reduced]) -> dict[str, str]:
    """Returns the labels as far as terms distinguish them: a value is kept only if some term names it."""
    visible = {key: OTHER_VALUE for pairs in seen for key, _ in pairs}
    return visible | {key: labels[key] for pairs in seen for key, value in pairs if value is not None}


def _needed(term: PodSelectorTerm) -> list[Label | None]:
    """Returns labels of which a pod needs one to be selected, or [None] if any pod may be."""
    sets = [wanted for wanted in term.selector.requirements if wanted.op is Operator.IN]
    if not sets:
        return [None]
    fewest = min(sets, key=lambda wanted: len(wanted.values))
    return [(fewest.key, value) for value in fewest.values]


def _token(carried: AffinityTerm) -> str:
    return hashlib.blake2b(_encoder.encode(carried), digest_size=12).hexdigest()
