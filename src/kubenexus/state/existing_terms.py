"""Which of the terms that pods carry speak of a pod: what others want of it, and nothing else about it.

A pod's class depends on the terms that select it, not on its labels. A term about another namespace says nothing of a
pod, and one that asks whether a label is there says the same of all that have it. To sign by the labels that terms ask
about would let one tenant's term take every other tenant's pods apart, each numbered member a class of its own.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import count

import msgspec

from kubenexus.api.selectors import NOTHING, Operator
from kubenexus.state.affinity_terms import AffinityTerm, PodSelectorTerm

MAX_TERMS_CHECKED = 1_000  # terms that one pod is held against: 0.5 ms
OTHER_VALUE = "\0"  # stands for all values of a label that no term names; no label can have it
_MAX_REMEMBERED = 4_096
_MAX_UNDONE = 1_024

Label = tuple[str, str]
Reduced = tuple[tuple[str, str | None], ...]
# The terms that speak of a pod, as tokens; or, where too many may, what they can see of its labels.
SelectorValues = tuple[str, ...] | dict[str, str]
_encoder = msgspec.msgpack.Encoder(order="deterministic")


class _TermUse(msgspec.Struct, gc=False):
    """A term, by how many it is carried, and what stands for it in signatures: it is the same whenever the same term
    comes back, so that a class is found again after a trial that was taken back."""

    carried: AffinityTerm
    token: str
    uses: int = 0


class _TermsOfScope:
    """Terms about the same namespaces. `mark` says which they are: equal marks, equal terms, and 0 none. What is taken
    back in reverse order, as after each trial in a decision, leaves the mark as it was."""

    __slots__ = ("_by_label", "_done", "_marks", "mark", "size", "values")

    def __init__(self, marks: Iterator[int]) -> None:
        self.mark = self.size = 0
        self.values: dict[str, dict[str | None, int]] = {}  # by key: how many terms name a value; None: ask at all
        self._marks = marks
        self._by_label: dict[Label | None, dict[str, _TermUse]] = {}  # by a label that a pod needs to be meant
        self._done: list[tuple[str, int, int]] = []

    def change(self, known: _TermUse, by: int) -> None:
        """A term comes (+1) or goes (-1)."""
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
        if not self.size:
            self.mark = 0
            self._done.clear()
        elif self._done and self._done[-1][:2] == (token, -by):
            self.mark = self._done.pop()[2]
        else:
            if len(self._done) == _MAX_UNDONE:
                del self._done[: _MAX_UNDONE // 2]
            self._done.append((token, by, self.mark))
            self.mark = next(self._marks)

    def reduced(self, labels: Mapping[str, str]) -> Reduced:
        """What its terms can see of these labels, however many terms there are."""
        values = self.values
        if not values:
            return ()
        return tuple([(key, value if value in values[key] else None) for key, value in labels.items() if key in values])

    def candidates(self, labels: Mapping[str, str]) -> Iterator[_TermUse]:
        """The terms that may mean a pod with these labels."""
        for label in (None, *labels.items()):
            yield from self._by_label.get(label, {}).values()


_NONE = _TermsOfScope(count(1))


class ExistingTerms:
    """Only the columns of pods write here. `namespaces` has the labels of each that is known."""

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._namespaces = namespaces
        self._marks = count(1)
        self._known: dict[AffinityTerm, _TermUse] = {}
        self._named: dict[str, _TermsOfScope] = {}  # by namespace: terms that name it
        self._selecting = _TermsOfScope(self._marks)  # terms that select namespaces by label
        self._relabelled: dict[str, int] = {}  # namespaces that had other labels once
        self._remembered: dict[tuple[object, ...], SelectorValues] = {}

    def __len__(self) -> int:
        return len(self._known)

    def change(self, carried: AffinityTerm, by: int) -> None:
        """One more carries this term (+1), or one less (-1). The others are not looked at: each workload may carry a
        term of its own."""
        known = self._known.get(carried)
        if known is None:
            known = self._known[carried] = _TermUse(carried, _token(carried))
        known.uses += by
        if known.uses == 0:
            del self._known[carried]
        if known.uses == 0 or known.uses == by == 1:
            self._place(known, by)

    def _place(self, known: _TermUse, by: int) -> None:
        term = known.carried.term
        if term.selector.nothing:
            return
        if term.namespace_selector != NOTHING:
            self._selecting.change(known, by)
        for namespace in term.namespaces:
            asked = self._named.get(namespace)
            if asked is None:
                asked = self._named[namespace] = _TermsOfScope(self._marks)
            asked.change(known, by)
            if not asked.size:
                del self._named[namespace]

    def namespace_changed(self, name: str, *, fresh: bool) -> None:
        """A namespace has other labels, or is gone; `fresh`: it was not known."""
        self._remembered.clear()
        if name not in self._namespaces:
            self._relabelled.pop(name, None)
        elif not fresh or self._selecting.size:
            self._relabelled[name] = next(self._marks)

    def scope(self, namespace: str) -> tuple[int, ...]:
        """Which terms may speak of this namespace's pods: while it is equal, `about` answers as it did. Empty: none
        does."""
        asked, selecting = self._named.get(namespace, _NONE), self._selecting
        marks = (asked.mark, selecting.mark, self._relabelled.get(namespace, 0))
        return marks if any(marks) else ()

    def token(self, carried: AffinityTerm) -> str:
        """What stands for a term in signatures; empty if none carries it."""
        known = self._known.get(carried)
        return "" if known is None else known.token

    def about(self, namespace: str, labels: Mapping[str, str]) -> SelectorValues:
        """What terms say of a pod. Remembered by what they can see of it, so that a pod with a number of its own costs
        no more than its siblings."""
        named, selecting = self._named.get(namespace, _NONE), self._selecting
        if not named.size and not selecting.size:
            return ()
        seen = (named.reduced(labels), selecting.reduced(labels))
        key = (namespace, named.mark, selecting.mark, *seen)
        said = self._remembered.get(key)
        if said is None:
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            said = self._remembered[key] = self._about(namespace, labels, seen)
        return said

    def _about(self, namespace: str, labels: Mapping[str, str], seen: tuple[Reduced, Reduced]) -> SelectorValues:
        found, known = set[str](), self._namespaces.get(namespace, {})
        for number, each in enumerate(self._candidates(namespace, labels)):
            if number == MAX_TERMS_CHECKED:
                return _visible(labels, seen)
            if _means(each, namespace, known, labels):
                found.add(each.token)
        return tuple(sorted(found))

    def meaning(self, namespace: str, labels: Mapping[str, str]) -> list[str]:
        """The tokens of all terms that mean such a pod, however many have to be looked at."""
        known, candidates = self._namespaces.get(namespace, {}), self._candidates(namespace, labels)
        return sorted({each.token for each in candidates if _means(each, namespace, known, labels)})

    def _candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[_TermUse]:
        for asked in (self._named.get(namespace, _NONE), self._selecting):
            yield from asked.candidates(labels)


def _means(each: _TermUse, namespace: str, known: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a term means such a pod. A namespace that is not known has no labels, as upstream."""
    term = each.carried.term
    return term.covers(namespace, known) and term.selector.matches(labels)


def _visible(labels: Mapping[str, str], seen: tuple[Reduced, Reduced]) -> dict[str, str]:
    """The labels as far as terms tell them apart: a value counts as such if one of them names it."""
    visible = {key: OTHER_VALUE for pairs in seen for key, _ in pairs}
    return visible | {key: labels[key] for pairs in seen for key, value in pairs if value is not None}


def _needed(term: PodSelectorTerm) -> list[Label | None]:
    """Labels of which a pod needs one to be selected; None: it may have any."""
    sets = [wanted for wanted in term.selector.requirements if wanted.op is Operator.IN]
    if not sets:
        return [None]
    fewest = min(sets, key=lambda wanted: len(wanted.values))
    return [(fewest.key, value) for value in fewest.values]


def _token(carried: AffinityTerm) -> str:
    return hashlib.blake2b(_encoder.encode(carried), digest_size=12).hexdigest()
