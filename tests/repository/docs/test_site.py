"""The documentation site: its references are those of the code, its links lead into it, and every page is in its menu.

`make docs-site` builds it with strict links; these tests need no mkdocs.
"""

import re
import socket
import urllib.error
import urllib.request

import pytest
import yaml

from docsite import build, check, events, hooks, reference
from tests.repository.docs.blocks import ROOT

DOCS = ROOT / "docs"
# Tags that only mkdocs can resolve, such as the name of a function.
CONFIG = yaml.safe_load(re.sub(r"!!python/name:\S+", "x", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))


def pages(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    if isinstance(nav, dict):
        return [page for each in nav.values() for page in pages(each)]
    assert isinstance(nav, list)
    return [page for each in nav for page in pages(each)]


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_reference_is_what_the_code_says(name: str) -> None:
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == reference.render(name), "run `make docs`"


def test_every_reason_of_an_event_has_a_meaning() -> None:
    assert set(events.MEANINGS) == events.reasons()


def test_every_page_is_in_the_menu_once() -> None:
    menu = pages(CONFIG["nav"])
    there = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    assert sorted(menu) == there, "a new page needs a line in the nav of mkdocs.yml"


def test_nothing_of_another_host_is_named() -> None:
    assert CONFIG["theme"]["font"] is False
    assert "extra_javascript" not in CONFIG
    assert "extra_css" not in CONFIG


@pytest.mark.parametrize(
    ("page", "markdown", "expected"),
    [
        pytest.param("docs/why.md", "[a](gangs.md#x)", "[a](gangs.md#x)", id="within docs"),
        pytest.param("docs/why.md", "[a](../Dockerfile)", "[a](repository/Dockerfile)", id="a file beside docs"),
        pytest.param("docs/adr/x.md", "[a](../../Makefile)", "[a](../repository/Makefile)", id="from a folder"),
        pytest.param(
            "docs/why.md",
            "[a](../tests/repository/docs)",
            "[a](repository/tests/repository/docs/index.md)",
            id="a folder",
        ),
        pytest.param("CONTRIBUTING.md", "[a](docs/why.md)", "[a](../why.md)", id="from beside docs into it"),
        pytest.param("changes/x.md", "[a](docs/why.md)", "[a](../../why.md)", id="from a fragment of the changelog"),
        pytest.param("docs/why.md", "[a](https://x.org/y)", "[a](https://x.org/y)", id="not to another site"),
        pytest.param("docs/why.md", "[a](#here)", "[a](#here)", id="not within the page"),
        pytest.param("docs/why.md", "```\n[a](../x)\n```", "```\n[a](../x)\n```", id="not in code"),
        pytest.param("docs/why.md", "[`[x]`](../Makefile)", "[`[x]`](repository/Makefile)", id="brackets in a link"),
    ],
)
def test_a_link_is_rewritten_for_the_site(page: str, markdown: str, expected: str) -> None:
    assert hooks.rewritten(markdown, page) == expected
    assert hooks.source(hooks.place(page)) == page


def test_what_pages_lead_to_exists_and_is_found() -> None:
    found = hooks.reachable([str(page.relative_to(ROOT)) for page in DOCS.rglob("*.md")])
    assert {"Dockerfile", "CONTRIBUTING.md", "deploy/helm/kubenexus/values.yaml"} <= found
    assert [path for path in found if not (ROOT / path).exists()] == []


def test_a_build_that_needs_the_network_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((socket.socket, "connect"), (socket.socket, "connect_ex")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # put back after the test
    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, getattr(socket, name))
    build.cut_off()
    with pytest.raises(urllib.error.URLError, match="built without network"):
        urllib.request.urlopen("http://127.0.0.1:9")
    with socket.socket() as connection, pytest.raises(build.NoNetwork):
        connection.connect(("127.0.0.1", 9))


@pytest.mark.parametrize(
    ("html", "found"),
    [
        pytest.param('<script src="https://cdn.example.com/x.js">', ["https://cdn.example.com/x.js"], id="a script"),
        pytest.param('<link rel="stylesheet" href="//fonts.example.com">', ["//fonts.example.com"], id="a font"),
        pytest.param('<a href="https://example.com">', [], id="a link is not fetched"),
        pytest.param('<link rel="canonical" href="https://example.com">', [], id="nor is a name"),
        pytest.param('<script src="assets/x.js">', [], id="its own script"),
    ],
)
def test_what_a_page_fetches_elsewhere_is_found(html: str, found: list[str]) -> None:
    assert check.foreign(html) == found
