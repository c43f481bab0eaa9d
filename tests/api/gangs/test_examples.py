"""The examples say what they are meant to say: each file, decoded and resolved, is the gangs it promises."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubenexus.api.codec import decode, decode_pod
from kubenexus.api.core import Pod
from kubenexus.state.object_kinds import GROUP_KINDS, KINDS, kind_name
from kubenexus.state.pod_group_store import PodGroupStore
from tests.api.gangs.builders import gang_of

FOLDER = Path(__file__).parents[3] / "examples" / "gangs"
RACK = "topology.kubernetes.io/rack"

# File: for each gang the members it has, how many must start, and within what; "" are pods that go by themselves.
EXPECTED = {
    "job": {"default/llama": (8, 8, "")},
    "rack": {"default/llama-rack": (8, 8, "rack")},
    "elastic": {"default/sweep": (8, 4, "")},
    "pytorchjob": {"default/bert": (4, 4, "")},
    "mpijob": {"default/cfd": (3, 3, "clique")},
    "spark": {"": (1, 1, ""), "default/etl-executors": (3, 3, "")},
    "ray": {"default/rl": (5, 3, "")},
    "native-podgroup": {"default/gpt": (2, 2, RACK)},
    "workload": {"default/serve/shard/0": (2, 2, ""), "default/serve/shard/1": (2, 2, "")},
    "coscheduling-podgroup": {"default/render": (3, 3, "")},
    "volcano-podgroup": {"default/genome": (3, 3, "")},
    "kueue-pod-group": {"default/tune": (3, 3, "")},
}


def read(file: str) -> tuple[list[Pod], PodGroupStore]:
    pods, groups = [], PodGroupStore()
    for thing in yaml.safe_load_all((FOLDER / f"{file}.yaml").read_text()):
        thing["metadata"] |= {"namespace": "default", "uid": thing["metadata"]["name"]}
        kind = kind_name(thing["kind"], thing["apiVersion"].rpartition("/")[0])
        if kind in GROUP_KINDS:
            groups.seen(kind, decode(json.dumps(thing).encode(), KINDS[kind].type))
        else:
            pods += [decode_pod(json.dumps(each).encode()) for each in made(thing)]
    return pods, groups


def made(thing: dict[str, Any]) -> list[dict[str, Any]]:
    """A pod, or those of a Job."""
    if thing["kind"] == "Pod":
        return [thing]
    template, name = thing["spec"]["template"], thing["metadata"]["name"]
    meta = [template["metadata"] | {"name": f"{name}-{i}", "namespace": "default"} for i in range(8)]
    assert thing["spec"]["parallelism"] == len(meta)
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": each, "spec": template["spec"]} for each in meta]


@pytest.mark.parametrize("file", EXPECTED)
def test_an_example_is_the_gangs_it_promises(file: str) -> None:
    pods, groups = read(file)
    members: Counter[str] = Counter()
    numbers: dict[str, tuple[int, str]] = {}
    for pod in pods:
        gang = gang_of(pod, groups)
        title = "" if gang is None else gang.title
        members[title] += 1
        numbers[title] = (1, "") if gang is None else (gang.minimum, gang.topology.required)
        assert gang is None or not gang.missing_object
        assert pod.spec.scheduler_name == "kubenexus-scheduler"
    assert {title: (members[title], *numbers[title]) for title in members} == EXPECTED[file]


@pytest.mark.parametrize("file", EXPECTED)
def test_an_example_that_not_every_version_takes_says_which_do(file: str) -> None:
    """Fields of the pod that came and went: a server that does not know them refuses the pods."""
    head = (FOLDER / f"{file}.yaml").read_text().partition("apiVersion")[0]
    pods, _ = read(file)
    fields = {name for pod in pods for name in ("scheduling_group", "workload_ref") if getattr(pod.spec, name)}
    said = {"scheduling_group": "(1.37 with the feature gate", "workload_ref": "For Kubernetes 1.35 alone"}
    assert [name for name in fields if said[name] not in head] == []


def test_every_example_is_here() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(EXPECTED)
