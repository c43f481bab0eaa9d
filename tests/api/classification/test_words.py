"""Whole words in names, components and images: as the naive reference splits them, and no parts of words (PC-2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.classification.words import (
    image_path,
    interactive_image_word,
    interactive_word,
    is_hub_component,
    serving_word,
)
from tests.api.classification import naive_words

PIECES = sorted(
    naive_words.APPLICATIONS | naive_words.SESSIONS | naive_words.AROUND | naive_words.SERVERS | naive_words.HUB
    | {"user", "scheduler", "placeholder", "image", "puller", "awaiter", "secret", "sync", *naive_words.LLM}
    | {"identity", "video", "gitlab", "replica", "code", "server", "quay.io", "localhost", "v1", "É", "İ", ""}
)  # fmt: skip
PARTS = st.tuples(st.sampled_from(PIECES), st.sampled_from(["-", "_", ".", "/", ":", "@", "", "--"]))
TEXTS = st.one_of(st.text(max_size=40), st.lists(PARTS.map("".join), max_size=6).map("".join))


@given(TEXTS)
def test_words_are_those_of_the_naive_reference(text: str) -> None:
    assert bool(interactive_word(text)) == naive_words.is_interactive_name(text)
    assert bool(serving_word(text)) == naive_words.is_serving(text)
    assert is_hub_component(text) == naive_words.is_hub_component(text)
    assert bool(interactive_image_word(text)) == naive_words.is_interactive_image(text)


@pytest.mark.parametrize("name", ["identity", "video", "provider", "gitlab", "label", "available", "replica"])
def test_a_part_of_a_word_is_no_word(name: str) -> None:
    assert interactive_word(name) == ""
    assert interactive_image_word(f"example/{name}") == ""


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("jupyter", "jupyter"),
        ("JupyterHub", "jupyterhub"),
        ("team-a-notebook", "notebook"),
        ("my_ide", "ide"),
        ("code-server", "code-server"),
        ("lab.7", "lab"),
        ("repl", "repl"),
        ("notebook-controller", ""),
        ("code-review-server", ""),
    ],
)
def test_a_name_shows_interactive_work_by_a_whole_word(name: str, word: str) -> None:
    assert interactive_word(name) == word


@pytest.mark.parametrize(
    ("image", "word"),
    [
        ("jupyter/scipy-notebook", "jupyter"),
        ("quay.io/jupyter/datascience-notebook:2025-03-10", "jupyter"),
        ("codercom/code-server:4.98", "code-server"),
        ("rocker/rstudio@sha256:00", "rstudio"),
        ("localhost:5000/nteract", "nteract"),
        ("example/app:jupyter", ""),
        ("jupyter.example.com/app", ""),
        ("registry.example.com:5000/app:vscode", ""),
        ("example/notebook-server", ""),
        ("quay.io/jupyterhub/k8s-singleuser-sample:4.2.0", "jupyterhub"),
        ("quay.io/jupyterhub/singleuser:5", "jupyterhub"),
        ("mirror.example.com/docker-hub/jupyter/scipy-notebook", "jupyter"),
        ("quay.io/jupyterhub/jupyterhub:5", ""),
        ("quay.io/jupyterhub/k8s-hub:4.2.0", ""),
        ("quay.io/jupyterhub/configurable-http-proxy:4.6.3", ""),
        ("quay.io/jupyterhub/k8s-secret-sync:4.2.0", ""),
    ],
)
def test_an_image_shows_it_by_its_path_alone(image: str, word: str) -> None:
    assert interactive_image_word(image) == word


def test_the_path_of_an_image_has_no_registry_tag_or_digest() -> None:
    assert image_path("registry.example.com:5000/Team/App:1.2@sha256:ab") == "team/app"
    assert image_path("app") == "app"
    assert image_path("team/app:1") == "team/app"


def test_what_follows_253_characters_is_not_read() -> None:
    assert interactive_word("a" * 252 + "-lab") == ""
    assert interactive_word("-" * 250 + "lab") == "lab"
