"""The guides: each object becomes the gang that the page promises, and its pods the kind of work that it names."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubenexus.webhook.mutation import mutate_gang
from tests.repository.docs.blocks import ROOT
from tests.repository.docs.test_yaml import review
from tests.webhook.requests import MIN, NAME, applied

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
CLASSIFICATION = (ROOT / "docs" / "classification.md").read_text(encoding="utf-8")
# The row of docs/classification.md that a guide is about; a test there holds each row to the code.
OPERATOR = {
    "kubeflow": "Kubeflow Training",
    "mpi": "MPI Operator",
    "jobset": "JobSet",
    "ray": "Ray: RayCluster, RayJob",
    "spark": "Spark, Spark Operator",
    "kserve": "KServe",
    "jupyterhub": "JupyterHub",
}


def text_of(guide: Path) -> str:
    return guide.read_text(encoding="utf-8")


def objects(guide: Path) -> list[dict[str, Any]]:
    found = re.findall(r"```yaml\n(.*?)```", text_of(guide), re.DOTALL)
    return [each for block in found for each in yaml.safe_load_all(block) if "kind" in each]


def row(guide: Path, title: str) -> str:
    (found,) = re.findall(rf"^\| {title} \| (.*) \|$", text_of(guide), re.MULTILINE)
    return str(found)


def gangs(data: object) -> set[tuple[str, str]]:
    """Name and minimum of each gang that templates within an object declare."""
    found: set[tuple[str, str]] = set()
    if isinstance(data, dict):
        labels = data.get("labels")
        if isinstance(labels, dict) and NAME in labels:
            found.add((labels[NAME], labels[MIN]))
        data = list(data.values())
    if isinstance(data, list):
        found |= {each for item in data for each in gangs(item)}
    return found


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_the_object_becomes_the_gang_that_the_guide_promises(guide: Path) -> None:
    promised = re.search(r"\*\*(\d+)\*\* pods.*?called `([^`]+)`", row(guide, "gang"))
    made = set()
    for data in objects(guide):
        made |= gangs(applied(data, mutate_gang(review(data)).patch))
    assert made == ({(promised[2], promised[1])} if promised else set())


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_the_kind_of_work_is_that_of_the_page_on_classification(guide: Path) -> None:
    (listed,) = re.findall(rf"^\| {re.escape(OPERATOR[guide.stem])} \|.*\| (\w+)[^|]*\|$", CLASSIFICATION, re.MULTILINE)
    assert row(guide, "kind of work").startswith(listed)


def test_there_is_a_guide_for_each_operator() -> None:
    assert {guide.stem for guide in GUIDES} == set(OPERATOR)
