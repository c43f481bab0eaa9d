"""ProfileClassifier: pods of different kinds are different classes, and nothing else changes."""

import re
from pathlib import Path

import pytest

from kubenexus.config import load
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN, default_profile, profile_plugins, shipped_profile
from kubenexus.plugins.workload.profile_classifier import ProfileClassifier
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

NAME = ProfileClassifier.name
KINDS = {
    "training": a_pod("t", labels={"training.kubeflow.org/job-name": "x"}),
    "inference": a_pod("i", labels={"serving.kserve.io/inferenceservice": "x"}),
    "batch": a_pod("b", labels={"spark-role": "driver"}),
    "service": a_pod("s"),
    "interactive": a_pod("n", labels={"notebook-name": "x"}),
}
PAGE = Path(__file__).parents[3] / "docs" / "plugins" / "profileclassifier.md"


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_tells_its_kind_as_plain_text(kind: str) -> None:
    nodes = a_ledger([a_node("n1")]).nodes
    signed = ClassCache(profile_plugins(shipped_profile())).lookup(KINDS[kind], nodes).table.pod.signed[NAME]
    assert signed == kind
    assert type(signed) is str


def test_pods_of_one_kind_are_one_class_and_those_of_others_are_not() -> None:
    nodes = a_ledger([a_node("n1")]).nodes
    cache = ClassCache(profile_plugins(shipped_profile()))
    tables = [id(cache.lookup(pod, nodes).table) for pod in KINDS.values()]
    assert len(set(tables)) == len(KINDS)
    again = a_pod("t2", labels={"pytorch.org/job-name": "y"})
    assert cache.lookup(again, nodes).table is cache.lookup(KINDS["training"], nodes).table


def test_it_takes_no_part_in_decisions() -> None:
    plugins = profile_plugins(shipped_profile())
    assert NAME in plugins.signing
    for called in (plugins.pre_filter, plugins.filters, plugins.scores, plugins.capacity, plugins.assigns):
        assert NAME not in [plugin.name for plugin in called]


def test_a_profile_of_kube_schedulers_plugins_does_not_have_it() -> None:
    nodes = a_ledger([a_node("n1")]).nodes
    cache = ClassCache(profile_plugins(default_profile()))
    assert NAME not in cache.lookup(KINDS["training"], nodes).table.pod.signed


def test_its_page_says_how_mature_it_is_and_has_a_valid_configuration() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert re.search(r"^Maturity: ", text, re.MULTILINE)
    (config,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    load(config, load_plugins(BUILT_IN))
