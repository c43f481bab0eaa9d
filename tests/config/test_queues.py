"""Queues in the configuration: the same settings as those of objects, and all problems at once."""

import pytest

from kubenexus.api.queues.settings import QueueSettings, queue_settings
from kubenexus.config.queue_settings import configured_queues, usage_half_life
from tests.config.builders import loaded, problems


def text(queues: str, profile: str = "a") -> str:
    args = f"{{queues: [{queues}]}}"
    return f"{{schedulerName: {profile}, pluginConfig: [{{name: KubeNexus, args: {args}}}]}}"


def test_without_queues_there_are_none() -> None:
    assert configured_queues(loaded("").args) == []


def test_queues_are_those_of_the_first_profile_that_has_some() -> None:
    queue = "{name: ml, weight: 3, limit: {cpu: 1500m, nvidia.com/gpu: 2}, namespaces: [a]}"
    both = f"profiles: [{{schedulerName: none}}, {text(queue)}, {text('{name: other}', 'b')}]"
    found = [queue_settings(queue.metadata.name, queue.spec) for queue in configured_queues(loaded(both).args)]
    assert found == [QueueSettings("ml", weight=3, most={"cpu": 1500, "nvidia.com/gpu": 2}, namespaces=("a",))]


@pytest.mark.parametrize(
    ("seconds", "problem"),
    [
        pytest.param(0, "", id="none"),
        pytest.param(3600, "", id="an hour"),
        pytest.param(59, "must be between 60 and 8640000", id="less than a minute"),
        pytest.param(-1, "must be between 60 and 8640000", id="a negative one"),
    ],
)
def test_the_half_life_of_usage(seconds: int, problem: str) -> None:
    args = f"{{queueUsageHalfLifeSeconds: {seconds}}}"
    given = f"profiles: [{{schedulerName: a}}, {{schedulerName: b, pluginConfig: [{{name: KubeNexus, args: {args}}}]}}]"
    if problem:
        (found,) = [str(each) for each in problems(given)]
        assert "args.queueUsageHalfLifeSeconds: " in found
    else:
        assert usage_half_life(loaded(given).args) == seconds


@pytest.mark.parametrize(
    ("queues", "problem"),
    [
        pytest.param("{weight: 1}", "[0].name: Required value", id="no name"),
        pytest.param("{name: a}, {name: a}", '[1].name: Duplicate value: "a"', id="a name twice"),
        pytest.param("{name: a, parent: b}", '[0].parent: Invalid value: "b": no queue', id="a parent that is missing"),
        pytest.param("{name: a, parent: b}, {name: b, parent: a}", "[0].parent: ", id="a cycle"),
        pytest.param("{name: a, limit: {cpu: x}}", "[0]: limit[cpu]: ", id="no quantity"),
        pytest.param("{name: a, limit: {cpu: [1]}}", "[0]: ", id="no quantity at all"),
        pytest.param("{name: a, weight: -1}", "[0]: weight: must be from 0", id="a weight below 0"),
        pytest.param("{name: a, limits: {}}", "[0].limits: unknown field", id="a field that does not exist"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(queues: str, problem: str) -> None:
    found = [str(each) for each in problems(f"profiles: [{text(queues)}]")]
    assert any(f"args.queues{problem}" in each for each in found), found
