"""A wrong configuration reports every error, each with its path, in kube-scheduler's words where it has some."""

import pytest

from kubenexus.config import InvalidConfiguration, load, validate
from tests.config.builders import ALL, HEAD, a_registry, cases, loaded, problems


@pytest.mark.parametrize(("text", "expected"), cases("wrong-documents"))
def test_every_error_is_reported_with_its_path(text: str, expected: list[str]) -> None:
    assert problems(text, a_registry(OtherSort="queueSort")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "the file is empty", id="empty"),
        pytest.param("- a", "must be a map", id="a list"),
        pytest.param(
            "kind: KubeSchedulerConfiguration",
            'apiVersion: Required value: must be "kubescheduler.config.k8s.io/v1"',
            id="no version",
        ),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\ndata: {}",
            'apiVersion: Unsupported value: "v1": supported values: "kubescheduler.config.k8s.io/v1"\n'
            'kind: Unsupported value: "ConfigMap": supported values: "KubeSchedulerConfiguration"',
            id="something else",
        ),
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nnonsense: 1",
            'apiVersion: Unsupported value: "kubescheduler.config.k8s.io/v1beta3": supported values: '
            '"kubescheduler.config.k8s.io/v1"',
            id="an old version",
        ),
    ],
)
def test_what_is_no_configuration_is_not_judged_further(text: str, expected: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        load(text, ALL)
    assert str(refused.value) == expected


def test_all_kinds_of_errors_come_together() -> None:
    found = [problem.path for problem in validate(HEAD + EVERYTHING_WRONG, ALL)]
    assert found == [
        "leaderElection.retryPeriod",
        "profiles[0].pluginConfig[0].args.scoringStrategy.shape",
        "parallelism",
        "extenders",
        "profiles[0].plugins.score.enabled[2].weight",
        "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio",
        "profiles[1].schedulerName",
    ]


EVERYTHING_WRONG = """
parallelism: -1
leaderElection: {retryPeriod: soon}
extenders: [{}]
profiles:
- schedulerName: a
  plugins:
    score:
      enabled: [{name: ImageLocality}, {name: NodeAffinity, weight: 7}, {name: TaintToleration, weight: -1}]
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: RequestedToCapacityRatio, shape: []}}
- {}
"""


def test_a_misfit_is_reported_once_and_not_again_for_the_value_that_stands_in() -> None:
    text = "profiles: [{plugins: {filter: {enabled: [NodeName, {name: 7}]}}, pluginConfig: [NodeName]}]"
    assert problems(text) == [
        'profiles[0].plugins.filter.enabled[0]: Invalid value: "NodeName": must be a map',
        "profiles[0].plugins.filter.enabled[1].name: Invalid value: 7: must be a text",
        'profiles[0].pluginConfig[0]: Invalid value: "NodeName": must be a map',
    ]


def test_null_says_the_same_as_nothing() -> None:
    empty = (
        "parallelism:\nprofiles:\n- schedulerName: a\n  plugins:\n  pluginConfig:\n  - name: NodeAffinity\n    args:\n"
    )
    said = "profiles: [{schedulerName: a, pluginConfig: [{name: NodeAffinity, args: {}}]}]"
    assert loaded(empty) == loaded(said)
    assert loaded("extenders: []\nprofiles: []") == loaded("")


def test_a_strange_name_is_shown_so_that_a_terminal_survives_it() -> None:
    (problem,) = problems('"\\e[31mred": 1')
    assert problem == "\\x1b[31mred: unknown field"
    (problem,) = problems("x" * 10_000 + ": 1")
    assert len(problem) < 400
