"""A contract that nothing can break is none: servers with one mistake each must be caught by it."""

from collections.abc import Callable, Iterator

import pytest

from kubenexus.sim.apiserver import listing, selecting, subresources, verbs, watching
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.store import DELETED, StoreChange
from tests.contract import suite
from tests.contract.api import install_widgets
from tests.contract.embedded import client
from tests.contract.http import Http

Patch = pytest.MonkeyPatch


def no_conflicts(patch: Patch) -> None:
    """Every update is taken for one of the latest state."""
    right = verbs._same_object

    def wrong(target: verbs.Target, rule: object, new: dict, old: dict, wish: verbs.WriteOptions) -> None:
        new.setdefault("metadata", {})["resourceVersion"] = old["metadata"]["resourceVersion"]
        right(target, rule, new, old, wish)  # type: ignore[arg-type]

    patch.setattr(verbs, "_same_object", wrong)


def a_lost_delete(patch: Patch) -> None:
    """Nobody who watches hears of a deletion."""
    right = watching.Watch._changed

    def wrong(self: watching.Watch, change: StoreChange) -> None:
        if change.type != DELETED:
            right(self, change)

    patch.setattr(watching.Watch, "_changed", wrong)


def a_selector_ignored(patch: Patch) -> None:
    """Lists and watches show everything."""

    def wrong(kind: ServedKind, label_text: str, field_text: str) -> None:
        right(kind, label_text, field_text)

    right = selecting.matcher
    patch.setattr(selecting, "matcher", wrong)


def a_watch_that_does_not_see_who_leaves(patch: Patch) -> None:
    """What ceases to match a selector is not told."""

    def wrong(self: watching.Watch, change: StoreChange) -> tuple[str, bytes]:
        assert self._matches is not None
        return (change.type, change.data) if self._matches(change.data) else ("", b"")

    patch.setattr(watching.Watch, "_judged", wrong)


def a_second_binding(patch: Patch) -> None:
    patch.setattr(subresources, "_may_bind", lambda *_: None)


def a_page_of_another_moment(patch: Patch) -> None:
    """The next page is of now, not of when the first was."""

    def wrong(core: object, collection: object, version: int, paging: bool) -> object:
        return collection.objects, collection.keys()  # type: ignore[attr-defined]

    patch.setattr(listing, "_state", wrong)


def a_write_where_nothing_changed(patch: Patch) -> None:
    right = verbs.finish

    def wrong(core: object, target: object, new: dict, old: dict, wish: object) -> object:
        new["metadata"].setdefault("annotations", {})["seen"] = old["metadata"]["resourceVersion"]
        return right(core, target, new, old, wish)  # type: ignore[arg-type]

    patch.setattr(verbs, "finish", wrong)


def no_grace(patch: Patch) -> None:
    from kubenexus.sim.apiserver import deleting

    patch.setattr(deleting, "_grace", lambda *_: 0)


MUTANTS = [
    no_conflicts,
    a_lost_delete,
    a_selector_ignored,
    a_watch_that_does_not_see_who_leaves,
    a_second_binding,
    a_page_of_another_moment,
    a_write_where_nothing_changed,
    no_grace,
]


@pytest.fixture
def http() -> Iterator[Http]:
    with client() as opened:
        install_widgets(opened)
        yield opened


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_contract_catches(mutant: Callable[[Patch], None], http: Http, monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    http.patience = 0.5  # a lost event is waited for in vain
    caught = [name for name, case in suite.CASES.items() if _fails(case, http)]
    assert caught, f"nothing noticed {mutant.__name__}"


def _fails(case: suite.Case, http: Http) -> bool:
    try:
        suite.run(case, http)
    except (AssertionError, TimeoutError, StopIteration):
        return True
    return False
