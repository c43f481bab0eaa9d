"""What the registry takes and what it refuses: at start-up, with the plugin's name in the message."""

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.extension_points import HIGHER_IS_BETTER, Depends
from kubenexus.framework.profile import EnabledPlugin, Factory, Profile, ProfilePlugins
from kubenexus.framework.registry import GROUP, check_plugin, load_plugins
from kubenexus.plugins import BUILT_IN, default_profile, profile_plugins, shipped_profile
from kubenexus.plugins.node_name import NodeName
from tests.framework.rules import Rule, scoring


class Shelf:
    """Packages beside ours: each is a module with an entry point, as an installer would leave it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, package: str, entry: str, source: str) -> None:
        (self.folder / f"{package}.py").write_text(source, encoding="utf-8")
        info = self.folder / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{entry}\n", encoding="utf-8")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    monkeypatch.syspath_prepend(os.fspath(tmp_path))
    before = set(sys.modules)
    yield Shelf(tmp_path)
    for module in set(sys.modules) - before:
        if getattr(sys.modules[module], "__file__", None) and str(tmp_path) in str(sys.modules[module].__file__):
            del sys.modules[module]
    invalidate_caches()


GOOD = """
from kubenexus.framework.extension_points import HIGHER_IS_BETTER, Depends
class Mine:
    name, reads, depends, normalize = "Mine", (), Depends.NODE, HIGHER_IS_BETTER
    def __init__(self, args): self.args = args
    def score(self, pod, nodes, job): return 0
"""


def test_an_installed_plugin_is_known_by_its_name_and_off_until_it_is_enabled(shelf: Shelf) -> None:
    shelf.put("mine", "Mine = mine:Mine", GOOD)
    factories = load_plugins(BUILT_IN)
    assert set(factories) == {*BUILT_IN, "Mine"}
    assert "Mine" not in [rule.name for rule in profile_plugins().plugins]
    enabled = profile_plugins(default_profile(also=[EnabledPlugin("Mine", weight=3, args={"a": 1})]))
    assert enabled.weights["Mine"] == 3
    assert enabled.scores[-1].args == {"a": 1}  # type: ignore[attr-defined]


REFUSED = [
    pytest.param("NodeName = mine:Mine", GOOD.replace("Mine", "NodeName"), "NodeName", "", id="another module's class"),
    pytest.param("Mine = mine:Mine", "raise OSError('no licence')", "Mine", "no licence", id="its import fails"),
    pytest.param(
        "Mine = mine:Mine", "import not_installed_anywhere", "Mine", "not_installed_anywhere", id="it needs more"
    ),
    pytest.param("Mine = mine:Mine", "def Mine(", "Mine", "", id="it is no Python"),
    pytest.param("Mine = mine:Yours", GOOD, "Mine", "Yours", id="no such class in it"),
    pytest.param("Mine = mine:Mine", "Mine = 5", "Mine", "must be a class", id="not a class"),
    pytest.param("Mine = mine:Mine", "def Mine(args): return None", "Mine", "must be a class", id="a function"),
    pytest.param("Other = mine:Mine", GOOD, "Other", "`name` must be 'Other'", id="its name is another"),
    pytest.param("Mine = mine:Mine", "class Mine: pass", "Mine", "`name`", id="it has no name"),
]


@pytest.mark.parametrize(("entry", "source", "name", "problem"), REFUSED)
def test_a_package_that_is_broken_is_an_error_at_start_that_names_the_plugin(
    shelf: Shelf, entry: str, source: str, name: str, problem: str
) -> None:
    shelf.put("mine", entry, source)
    with pytest.raises(KubeNexusError) as caught:
        profile_plugins()
    assert repr(name if entry.startswith(name) else "Mine") in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("gate", "pre_enqueue"),
        pytest.param("order", "sort_key"),
        pytest.param("pins", "node_names"),
        pytest.param("prepare", "pre_filter"),
        pytest.param("room", "capacity"),
        pytest.param("touched", "touched_rows"),
        pytest.param("bonds", "member_constraints"),
        pytest.param("join", "combine"),
        pytest.param("wakes", "events_to_register"),
        pytest.param("scalar", "supports_one_node"),
        pytest.param("at_rest", "default_score"),
        pytest.param("of_volumes", "volumes_only"),
    ],
)
def test_a_plugin_with_an_old_name_is_an_error_at_start_that_says_the_new_one(shelf: Shelf, old: str, new: str) -> None:
    shelf.put("mine", "Mine = mine:Mine", f"{GOOD}    {old} = None\n")
    with pytest.raises(KubeNexusError, match=f"^plugin 'Mine': `{old}` is now called `{new}`$"):
        profile_plugins()


def test_a_plugin_may_use_an_old_name_beside_the_new_one(shelf: Shelf) -> None:
    shelf.put("mine", "Mine = mine:Mine", f"{GOOD}    gate, pre_enqueue = 1, lambda self, pod: None\n")
    assert "Mine" in load_plugins(BUILT_IN)


def test_a_name_that_is_taken_is_an_error_that_names_both(shelf: Shelf) -> None:
    shelf.put("one", "Mine = one:Mine", GOOD)
    shelf.put("two", "Mine = two:Mine", GOOD)
    with pytest.raises(KubeNexusError, match=r"'Mine' \((one|two):Mine\): the name is taken"):
        profile_plugins()


def test_a_built_in_name_cannot_be_taken_over(shelf: Shelf) -> None:
    shelf.put("mine", "NodeName = mine:NodeName", GOOD.replace("Mine", "NodeName"))
    with pytest.raises(KubeNexusError, match=r"'NodeName' \(mine:NodeName\): the name is taken"):
        profile_plugins()


def one(**parts: Any) -> type[Any]:
    """A class with a name and these parts."""
    return type("Mine", (), {"name": "Mine", "reads": (), **parts})


def three(self: Any, pod: Any, nodes: Any, job: Any) -> None: ...
def two(self: Any, pod: Any, nodes: Any) -> None: ...
def many(self: Any, *rest: Any) -> None: ...
def keywords(self: Any, *, pod: Any, nodes: Any, job: Any) -> None: ...


KEPT = {"depends": Depends.NODE, "normalize": HIGHER_IS_BETTER}


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(
            one(reads=None, pre_enqueue=lambda self, pod: None), "`reads` must be a tuple", id="reads missing"
        ),
        pytest.param(one(reads=["spec.priority"], score=three, **KEPT), "`reads` must be a tuple", id="reads a list"),
        pytest.param(one(reads="spec.priority", score=three, **KEPT), "`reads` must be a tuple", id="reads a text"),
        pytest.param(one(), "implements none of", id="does nothing"),
        pytest.param(one(score=5), "implements none of", id="a point that cannot be called"),
        pytest.param(one(score=two, **KEPT), "`score` must take 3 arguments", id="an argument too few"),
        pytest.param(one(filter=keywords, **KEPT), "`filter` must take 3 arguments", id="keywords only"),
        pytest.param(one(pre_enqueue=two), "`pre_enqueue` must take 1 arguments", id="an argument too many"),
        pytest.param(one(score=three, depends=Depends.NODE), "`normalize`", id="normalize missing"),
        pytest.param(one(score=three, normalize=HIGHER_IS_BETTER), "`depends`", id="depends missing"),
        pytest.param(
            one(score=three, depends="node", normalize=HIGHER_IS_BETTER), "`depends`, a Depends", id="depends a text"
        ),
        pytest.param(one(filter=three), "`depends`", id="a filter needs it, too"),
        pytest.param(
            one(pre_enqueue=lambda self, pod: None, events_to_register="all"),
            "`events_to_register` must be",
            id="events are a text",
        ),
        pytest.param(
            one(pre_enqueue=lambda self, pod: None, events_to_register=("all",)),
            "`events_to_register` must be",
            id="events are texts",
        ),
        pytest.param(one(filter=three, **KEPT, sign=three), "`sign` must take 2 arguments", id="sign with a job"),
        pytest.param(
            one(filter=three, **KEPT, member_constraints=two),
            "`member_constraints` must take 3 arguments",
            id="bonds without peers",
        ),
    ],
)
def test_a_class_that_does_not_keep_the_contract_is_refused_and_named(plugin: type[Any], problem: str) -> None:
    with pytest.raises(KubeNexusError) as caught:
        check_plugin("Mine", plugin)
    assert "'Mine'" in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "plugin",
    [
        pytest.param(one(score=three, **KEPT), id="score"),
        pytest.param(one(score=many, **KEPT), id="any arguments"),
        pytest.param(one(filter=three, depends=Depends.USAGE | Depends.CLUSTER), id="filter"),
        pytest.param(one(pre_enqueue=lambda self, pod: None), id="gate"),
        pytest.param(one(assign=three, capacity=three), id="assign and room"),
    ],
)
def test_a_class_that_keeps_it_is_taken(plugin: type[Any]) -> None:
    check_plugin("Mine", plugin)


def test_a_plugin_may_only_sign() -> None:
    check_plugin("Signs", type("Signs", (), {"name": "Signs", "reads": (), "sign": lambda self, pod, nodes: None}))


def test_every_built_in_keeps_the_contract_it_asks_of_others() -> None:
    for name, plugin in BUILT_IN.items():
        check_plugin(name, plugin)


def test_only_the_built_in_classes_themselves_are_trusted(shelf: Shelf) -> None:
    shelf.put("mine", "Mine = mine:Mine", GOOD)
    looks_built_in = type("Rule", (Rule,), {"__module__": "kubenexus.plugins.rule", "sort_key": many})
    inherits = type("Heir", (NodeName,), {"name": "Heir"})
    others: dict[str, Any] = {"Rule": looks_built_in, "Heir": inherits, "Mine": load_plugins(BUILT_IN)["Mine"]}
    also = [EnabledPlugin(name) for name in others]
    profile = msgspec.structs.replace(shipped_profile(), plugins=(*shipped_profile().plugins, *also))
    found = ProfilePlugins(profile, {**BUILT_IN, **others}).traits
    assert {name for name, traits in found.items() if traits.trusted} == {*BUILT_IN}
    assert {name for name, traits in found.items() if not traits.trusted} == {*others}


def a_default(when: str) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when}


@pytest.mark.parametrize(
    ("args", "depends"),
    [
        pytest.param({}, False, id="the usual constraints only score"),
        pytest.param(
            {"defaultingType": "List", "defaultConstraints": [a_default("ScheduleAnyway")]}, False, id="soft ones"
        ),
        pytest.param(
            {"defaultingType": "List", "defaultConstraints": [a_default("DoNotSchedule")]}, True, id="hard ones"
        ),
    ],
)
def test_a_profile_depends_on_owners_if_default_constraints_refuse_nodes(args: dict[str, Any], depends: bool) -> None:
    assert profile_plugins(profile(EnabledPlugin("PodTopologySpread", args=args))).depends_on_owners is depends


def test_any_plugin_may_say_that_it_depends_on_owners(shelf: Shelf) -> None:
    shelf.put("mine", "Mine = mine:Mine", f"{GOOD}    depends_on_owners = True\n")
    assert profile_plugins(profile(EnabledPlugin("Mine"))).depends_on_owners


def factory(rule: Any) -> Factory:
    return rule


def profile(*plugins: EnabledPlugin) -> Profile:
    return Profile("mine", plugins)


def test_a_profile_that_names_an_unknown_plugin_is_refused_with_the_known_ones() -> None:
    with pytest.raises(KubeNexusError, match=r"'mine'.*unknown plugin 'NodeNames'.*NodeName"):
        profile_plugins(profile(EnabledPlugin("NodeNames")))


def test_a_plugin_enabled_twice_is_refused() -> None:
    with pytest.raises(KubeNexusError, match=r"'mine'.*'NodeName' is enabled twice"):
        profile_plugins(profile(EnabledPlugin("NodeName"), EnabledPlugin("NodeName", weight=2)))


class Picky(Rule):
    """Refuses its arguments."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        raise ValueError("shape: needs a point")

    def pre_enqueue(self, pod: Any) -> None: ...


def test_a_plugin_that_refuses_its_arguments_is_named() -> None:
    with pytest.raises(KubeNexusError, match=r"'Rule'.*shape: needs a point"):
        ProfilePlugins(profile(EnabledPlugin("Rule", args={"shape": []})), {"Rule": factory(Picky)})


@pytest.mark.parametrize("weight", [-1, 2**31])
def test_a_weight_that_no_sum_of_scores_could_bear_is_refused_and_its_plugin_named(weight: int) -> None:
    with pytest.raises(KubeNexusError, match="'Rule'"):
        ProfilePlugins(profile(EnabledPlugin("Rule", weight=weight)), {"Rule": factory(scoring(lambda nodes: 0))})
