"""The naive reference for whole words: it splits a text at everything that is no letter or digit."""

from itertools import pairwise

APPLICATIONS = {"jupyter", "jupyterhub", "jupyterlab", "rstudio", "vscode", "openvscode", "codeserver", "nteract"}
SESSIONS = {"ide", "repl", "lab", "notebook", "notebooks"}
AROUND = {"controller", "operator", "webhook", "exporter"}
SERVERS = {"predictor", "inference", "serving"}
LLM = ("llminferenceservice", "workload")
HUB = {"hub", "proxy", "autohttps"}
HUB_PAIRS = {("user", "scheduler"), ("user", "placeholder"), ("image", "puller")}
HUB_IMAGES = {"hub", "proxy"}
HUB_IMAGE_PAIRS = {("secret", "sync"), ("image", "awaiter")}


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
    words, last = split("/".join(parts)), split(parts[-1])
    hub = not HUB_IMAGES.isdisjoint(last) or not HUB_IMAGE_PAIRS.isdisjoint(pairwise(last)) or parts[-1] == "jupyterhub"
    return _has(words, APPLICATIONS) and AROUND.isdisjoint(words) and not hub


def is_hub_component(component: str) -> bool:
    words = split(component[:253])
    return not HUB.isdisjoint(words) or not HUB_PAIRS.isdisjoint(pairwise(words))


def is_serving(component: str) -> bool:
    words = split(component[:253])
    return not SERVERS.isdisjoint(words) or LLM in pairwise(words)
