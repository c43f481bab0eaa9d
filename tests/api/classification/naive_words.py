"""The naive reference for whole words: it splits a text at everything that is no letter or digit."""

from itertools import pairwise

APPLICATIONS = {"jupyter", "jupyterhub", "jupyterlab", "rstudio", "vscode", "openvscode", "codeserver", "nteract"}
SESSIONS = {"ide", "repl", "lab", "notebook", "notebooks"}
AROUND = {"controller", "operator", "webhook", "exporter"}
SERVERS = {"predictor", "inference", "serving"}


def split(text: str) -> list[str]:
    words, word = [], ""
    for character in text.lower() + " ":
        if character in "abcdefghijklmnopqrstuvwxyz0123456789":
            word += character
        elif word:
            words.append(word)
            word = ""
    return words


def _has(words: list[str], wanted: set[str]) -> bool:
    return not wanted.isdisjoint(words) or ("code", "server") in pairwise(words)


def is_interactive_name(name: str) -> bool:
    words = split(name[:253])
    return _has(words, APPLICATIONS | SESSIONS) and AROUND.isdisjoint(words)


def is_interactive_image(image: str) -> bool:
    parts = image[:253].lower().split("@")[0].split("/")
    if len(parts) > 1 and ("." in parts[0] or ":" in parts[0] or parts[0] == "localhost"):
        parts = parts[1:]
    parts[-1] = parts[-1].split(":")[0]
    words = split("/".join(parts))
    return _has(words, APPLICATIONS) and AROUND.isdisjoint(words)


def is_serving(component: str) -> bool:
    return not SERVERS.isdisjoint(split(component[:253]))
