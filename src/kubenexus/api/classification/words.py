"""Whole words in names of applications and images. `identity` does not contain the word `ide`.

A word is a run of ASCII letters and digits; all other characters separate words.
"""

import functools
import re
from collections.abc import Iterable
from typing import Final

MAX_TEXT: Final = 253  # characters of a name or an image; what follows is not read
_KEPT: Final = 1024  # texts whose word is remembered: 0.1 us instead of 0.6 for a name and 2 for an image

# Applications in which a person works. A `-` in a word stands for any separator.
_APPLICATIONS: Final = (
    "jupyter",
    "jupyterhub",
    "jupyterlab",
    "rstudio",
    "vscode",
    "openvscode",
    "code-server",
    "codeserver",
    "nteract",
)
# Further words that name such an application; in the name of an image they say too little.
_SESSIONS: Final = ("ide", "repl", "lab", "notebook", "notebooks")
# `notebook-controller` serves notebooks and is none.
_AROUND: Final = ("controller", "operator", "webhook", "exporter")
# JupyterHub's own services: by their component, and by the last part of their image (`jupyterhub/k8s-hub`). The servers
# of its users have the component `singleuser-server`.
_HUB_COMPONENTS: Final = ("hub", "proxy", "autohttps", "user-scheduler", "user-placeholder", "image-puller")
_HUB_IMAGES: Final = ("hub", "proxy", "secret-sync", "image-awaiter")
_HUB: Final = "jupyterhub"  # as the whole last part: the image of the hub itself
_SERVERS: Final = ("predictor", "inference", "serving", "llminferenceservice-workload")


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    found = "|".join(word.replace("-", "[^a-z0-9]+") for word in words)
    return re.compile(f"(?<![a-z0-9])(?:{found})(?![a-z0-9])")


_INTERACTIVE_NAME: Final = _pattern((*_APPLICATIONS, *_SESSIONS))
_INTERACTIVE_IMAGE: Final = _pattern(_APPLICATIONS)
_NOT_INTERACTIVE: Final = _pattern(_AROUND)
_HUB_COMPONENT: Final = _pattern(_HUB_COMPONENTS)
_HUB_IMAGE: Final = _pattern(_HUB_IMAGES)
_SERVING: Final = _pattern(_SERVERS)


def interactive_word(name: str) -> str:
    """Returns the word in an application's name that shows interactive work, or ""."""
    return _interactive_word(name[:MAX_TEXT])


def serving_word(component: str) -> str:
    """Returns the word in the name of a component that shows a model server, or ""."""
    return _serving_word(component[:MAX_TEXT])


def is_hub_component(component: str) -> bool:
    """Whether the name of a component is that of a service which starts notebooks for users, and is none."""
    return bool(_hub_word(component[:MAX_TEXT]))


def interactive_image_word(image: str) -> str:
    """Returns the word in the path of an image that shows interactive work, or "". The registry, the tag and the digest
    do not count, nor do images of JupyterHub's own services."""
    return _interactive_image_word(image[:MAX_TEXT])


def image_path(image: str) -> str:
    """Returns the path of an image in lower case: `jupyter/scipy-notebook` of `quay.io/jupyter/scipy-notebook:2025`."""
    path = image[:MAX_TEXT].lower().partition("@")[0]
    host, slash, rest = path.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        path = rest
    head, slash, last = path.rpartition("/")
    return head + slash + last.partition(":")[0]


@functools.lru_cache(maxsize=_KEPT)
def _interactive_word(name: str) -> str:
    text = name.lower()
    word = _first(_INTERACTIVE_NAME, text)
    return "" if word and _NOT_INTERACTIVE.search(text) else word


@functools.lru_cache(maxsize=_KEPT)
def _interactive_image_word(image: str) -> str:
    path = image_path(image)
    word, last = _first(_INTERACTIVE_IMAGE, path), path.rpartition("/")[2]
    service = _NOT_INTERACTIVE.search(path) or _HUB_IMAGE.search(last) or last == _HUB
    return "" if word and service else word


@functools.lru_cache(maxsize=_KEPT)
def _hub_word(component: str) -> str:
    return _first(_HUB_COMPONENT, component.lower())


@functools.lru_cache(maxsize=_KEPT)
def _serving_word(component: str) -> str:
    return _first(_SERVING, component.lower())


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[0] if match else ""
