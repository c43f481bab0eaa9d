"""Whatever stands where in a document: problems with paths, or a configuration, and never anything else."""

import copy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from kubenexus.config import validate
from kubenexus.framework.profile import ProfilePlugins
from tests.config.builders import ALL, HEAD, loaded, problems

EVERY = yaml.safe_load((Path(__file__).parent / "samples" / "every-setting.yaml").read_text(encoding="utf-8"))
STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "*", "0", "1e9", "-5s", "\x1b[0m", "x" * 10_000, "NodeName", "Straße", "\u202e"]),
    st.sampled_from([[], {}, [[]], [None], [{}], {"": {}}, {"name": None}, [{"name": "*"}], {"enabled": [5]}]),
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document where a value stands."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(data, dict):
        inside = list(data.items())
    elif isinstance(data, list):
        inside = list(enumerate(data))
    return [path, *(place for key, value in inside for place in places(value, (*path, key)))][0 if path else 1 :]


PLACES = [place for place in places(EVERY) if place[0] not in ("apiVersion", "kind")]


@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), STRANGE), min_size=1, max_size=3))
@example(changes=[(("profiles",), [{}] * 50)])
@example(changes=[(("profiles", 0, "pluginConfig", 4, "args"), {"scoringStrategy": {"resources": [None]}})])
def test_a_strange_value_anywhere_is_a_problem_or_fine(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    document = copy.deepcopy(EVERY)
    for path, value in changes:
        holder = document
        try:
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change has taken the place away
    text = yaml.safe_dump(document)
    for problem in validate(text, ALL):
        assert problem.message
        assert str(problem).isprintable()
        assert len(str(problem)) < 2000
    assert validate(text, ALL) == validate(text, ALL)


def test_ten_thousand_mistakes_are_all_reported_in_a_few_seconds() -> None:
    many = "\n".join(f"parallelism{i}: 1" for i in range(10_000))
    assert len(problems(many)) == 10_000
    plugins = ", ".join(f"{{name: NodeName{i}}}" for i in range(5_000))
    assert len(problems(f"profiles: [{{plugins: {{filter: {{enabled: [{plugins}]}}}}}}]")) == 5_000


def test_a_thousand_profiles_are_a_thousand_profiles() -> None:
    many = loaded("profiles: [" + ", ".join(f"{{schedulerName: s{i}}}" for i in range(1_000)) + "]")
    assert len({profile.name for profile in many.profiles}) == 1_000
    ProfilePlugins(many.profiles[-1], ALL)


def test_aliases_may_share_what_profiles_have_in_common() -> None:
    text = """
profiles:
- &base
  schedulerName: a
  plugins: {score: {disabled: [{name: ImageLocality}]}}
- <<: *base
  schedulerName: b
"""
    first, second = loaded(text).profiles
    assert (first.name, second.name) == ("a", "b")
    assert first.plugins == second.plugins


def test_a_document_that_is_only_its_head_is_valid() -> None:
    assert validate(HEAD, ALL) == []
