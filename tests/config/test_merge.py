"""Who is asked where: kube-scheduler's precedence, as a table and against a plain port of its procedure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.config.multi_point import expand_at_point, merge_plugin_set, weights
from kubenexus.config.v1 import Plugin, PluginSet

NAMES = "ABCDEF"


def a_set(enabled: str = "", disabled: str = "") -> PluginSet:
    return PluginSet(enabled=[Plugin(name=n) for n in enabled], disabled=[Plugin(name=n) for n in disabled])


def a_list(names: str) -> list[Plugin]:
    return [Plugin(name=name) for name in names]


@pytest.mark.parametrize(
    ("custom", "expected"),
    [
        pytest.param(a_set(), "ABC", id="nothing said: the defaults"),
        pytest.param(a_set("X"), "ABCX", id="one more comes last"),
        pytest.param(a_set("B"), "ABC", id="one of the defaults keeps its place"),
        pytest.param(a_set("", "B"), "AC", id="one less"),
        pytest.param(a_set("", "*"), "", id="all off"),
        pytest.param(a_set("CX", "*"), "CX", id="all off, some on: only those, in their order"),
        pytest.param(a_set("A", "A"), "BCA", id="off and on: on, at the end"),
        pytest.param(a_set("", "Z"), "ABC", id="off, but never on"),
    ],
)
def test_multi_point_changes_the_default_set(custom: PluginSet, expected: str) -> None:
    assert "".join(plugin.name for plugin in merge_plugin_set(a_list("ABC"), custom)) == expected


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        pytest.param(a_set(), "ABC", id="nothing said: the set, where it has the point"),
        pytest.param(a_set("X"), "ABCX", id="another one comes last"),
        pytest.param(a_set("C"), "CAB", id="one of the set comes first"),
        pytest.param(a_set("XCB"), "CBAX", id="first those of the set, then the rest of it, then the others"),
        pytest.param(a_set("", "B"), "AC", id="one less here"),
        pytest.param(a_set("", "*"), "", id="none here"),
        pytest.param(a_set("XB", "*"), "XB", id="none but these"),
        pytest.param(a_set("A", "A"), "BCA", id="off and on: on, at the end"),
        pytest.param(a_set("D"), "ABCD", id="on here although the set has it not here"),
    ],
)
def test_a_point_goes_before_multi_point(here: PluginSet, expected: str) -> None:
    assert "".join(expand_at_point(a_list("ADBC"), here, able="ABCX")) == expected


def test_a_weight_at_the_point_goes_before_one_of_the_set_even_if_it_is_none() -> None:
    chosen = [Plugin(name="A", weight=3), Plugin(name="B", weight=4), Plugin(name="C"), Plugin(name="D", weight=0)]
    score = PluginSet(enabled=[Plugin(name="B"), Plugin(name="E", weight=9)])
    assert weights(chosen, score) == {"A": 3, "B": 1, "C": 1, "D": 1, "E": 9}


SETS = st.builds(
    a_set,
    st.lists(st.sampled_from(NAMES), max_size=4, unique=True).map("".join),
    st.lists(st.sampled_from(NAMES + "*"), max_size=3, unique=True).map("".join),
)


@given(defaults=st.permutations("ABCD"), multi=SETS, here=SETS, able=st.sets(st.sampled_from(NAMES)))
def test_the_same_as_kube_schedulers_procedure(
    defaults: list[str], multi: PluginSet, here: PluginSet, able: set[str]
) -> None:
    ours = expand_at_point(merge_plugin_set(a_list("".join(defaults)), multi), here, able)
    assert ours == upstream_point(upstream_set(defaults, multi), here, able)


def upstream_set(defaults: list[str], custom: PluginSet) -> list[str]:
    """`mergePluginSet`, step by step."""
    disabled = {plugin.name for plugin in custom.disabled}
    wanted = [plugin.name for plugin in custom.enabled]
    replaced: set[int] = set()
    result: list[str] = []
    if "*" not in disabled:
        for name in defaults:
            if name in disabled:
                continue
            if name in wanted:
                replaced.add(wanted.index(name))
            result.append(name)
    for index, name in enumerate(wanted):
        if index not in replaced:
            result.append(name)
    return result


def upstream_point(multi_point: list[str], here: PluginSet, able: set[str]) -> list[str]:
    """`expandMultiPointPlugins`, step by step."""
    enabled = [plugin.name for plugin in here.enabled]
    disabled = {plugin.name for plugin in here.disabled}
    if "*" in disabled:
        return enabled
    overridden: list[str] = []
    expanded: list[str] = []
    for name in multi_point:
        if name not in able or name in disabled:
            continue
        if name in enabled:
            overridden.append(name)
        else:
            expanded.append(name)
    first = [name for name in enabled if name in overridden]
    last = [name for name in enabled if name not in overridden]
    return first + expanded + last
