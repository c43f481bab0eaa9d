"""The page for users has every label, owner and word that the code knows."""

import re
from pathlib import Path

from kubenexus.api.classification import words
from kubenexus.api.classification.operators import LABELS, MAX_OWNERS, OWNERS
from kubenexus.api.classification.workload import MAX_CONTAINERS, WorkloadType

PAGE = (Path(__file__).parents[3] / "docs" / "classification.md").read_text(encoding="utf-8")
# Spellings of older versions and of the founding documents, which no operator of today sets; keys.md has them.
OLD = {
    "tf-replica-type",
    "pytorch-replica-type",
    "pytorch-job-name",
    "mpi-job-role",
    "kubeflow.org/component",
    "pytorch.org/job-name",
    "tensorflow.org/job-name",
    "serving.kubeflow.org/inferenceservice",
}


def test_the_page_has_all_labels() -> None:
    text = PAGE.replace("`.../replicatedjob-name`", "`jobset.sigs.k8s.io/replicatedjob-name`")
    text = re.sub(r"`\.\.\./(replica-type|replica-index|job-role|operator-name)`", r"`training.kubeflow.org/\1`", text)
    missing = {key for keys in LABELS.values() for key in keys if f"`{key}`" not in text}
    assert missing == OLD


def test_the_page_has_all_owners_and_their_groups() -> None:
    owners = [line for line in PAGE.splitlines() if line.startswith("| ")]
    for kind, groups in OWNERS.items():
        for group in groups:
            assert kind == "MXNetJob" or any(f"`{kind}`" in line and f"`{group}`" in line for line in owners), kind


def test_the_page_has_all_kinds_words_and_limits() -> None:
    known = (*words._APPLICATIONS, *words._SESSIONS, *words._AROUND, *words._SERVERS, *WorkloadType)
    assert [word for word in known if f"`{word}`" not in PAGE] == []
    assert f"owners the first {MAX_OWNERS} are read, of its containers the first {MAX_CONTAINERS}," in PAGE
    assert f"the first {words.MAX_TEXT} characters" in PAGE
