"""What a Queue sets, in scheduler units, and what is refused with the name of the field."""

from typing import Any

import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.queues.queue import Queue
from kubenexus.api.queues.settings import QueueSettings, queue_settings
from kubenexus.base.errors import Malformed


def settings(**spec: Any) -> QueueSettings:
    queue = from_data({"metadata": {"name": "research"}, "spec": spec}, Queue)
    return queue_settings(queue.metadata.name, queue.spec)


def test_amounts_are_in_scheduler_units() -> None:
    found = settings(
        parent="all", weight=3, guaranteed={"cpu": "1500m", "memory": "1Gi"}, limit={"nvidia.com/gpu": 8, "pods": 5}
    )
    assert (found.name, found.parent, found.weight) == ("research", "all", 3)
    assert found.guaranteed == {"cpu": 1500, "memory": 1 << 30}
    assert found.most == {"nvidia.com/gpu": 8, "pods": 5}


def test_a_queue_that_sets_nothing_has_the_weight_one_and_no_limits() -> None:
    assert settings() == QueueSettings("research")


@pytest.mark.parametrize(
    ("spec", "most", "kept"),
    [
        pytest.param({"guaranteed": {"cpu": 2}}, {}, {}, id="borrows and lends all"),
        pytest.param({"guaranteed": {"cpu": 2}, "borrowingLimit": {"cpu": 1}}, {"cpu": 3000}, {}, id="borrows some"),
        pytest.param({"guaranteed": {"cpu": 2}, "borrowingLimit": {"cpu": 0}}, {"cpu": 2000}, {}, id="borrows nothing"),
        pytest.param({"borrowingLimit": {"cpu": 1}}, {"cpu": 1000}, {}, id="borrows what it has no guarantee of"),
        pytest.param(
            {"guaranteed": {"cpu": 2}, "borrowingLimit": {"cpu": 9}, "limit": {"cpu": 4}},
            {"cpu": 4000},
            {},
            id="the lower of two limits counts",
        ),
        pytest.param({"guaranteed": {"cpu": 2}, "lendingLimit": {"cpu": 0}}, {}, {"cpu": 2000}, id="lends nothing"),
        pytest.param({"guaranteed": {"cpu": 2}, "lendingLimit": {"cpu": 1}}, {}, {"cpu": 1000}, id="lends some"),
        pytest.param({"guaranteed": {"cpu": 2}, "lendingLimit": {"cpu": 7}}, {}, {}, id="lends no more than it has"),
    ],
)
def test_what_a_queue_may_use_and_keeps(spec: dict[str, Any], most: dict[str, int], kept: dict[str, int]) -> None:
    found = settings(**spec)
    assert (found.most, found.kept) == (most, kept)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"parent": "research"}, "spec.parent", id="its own parent"),
        pytest.param({"parent": "No Name"}, "spec.parent", id="a parent that can be no queue"),
        pytest.param({"weight": -1}, "spec.weight", id="a negative weight"),
        pytest.param({"weight": 1_000_001}, "spec.weight", id="a weight that is too large"),
        pytest.param({"limit": {"cpu": "-1"}}, "spec.limit[cpu]", id="a negative amount"),
        pytest.param({"limit": {"cpu": "some"}}, "spec.limit[cpu]", id="no quantity"),
        pytest.param({"limit": {"gpu": 1}}, "spec.limit[gpu]", id="no resource of nodes"),
        pytest.param({"guaranteed": {"cpu": 2}, "limit": {"cpu": 1}}, "spec.limit[cpu]", id="less than guaranteed"),
        pytest.param(
            {"limit": {f"example.com/r{i}": 1 for i in range(33)}}, "spec.limit", id="more resources than allowed"
        ),
        pytest.param({"namespaces": ["n"] * 1001}, "spec.namespaces", id="more namespaces than allowed"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {f"l{i}": "" for i in range(33)}}},
            "spec.namespaceSelector",
            id="a selector that is too large",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            "spec.namespaceSelector",
            id="a selector that cannot be read",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(Malformed) as caught:
        settings(**spec)
    assert field in str(caught.value)
