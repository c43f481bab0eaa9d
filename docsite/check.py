"""Looks through a built site for what a browser would fetch from another host, and for pages that are missing.

python -m docsite.check FOLDER
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# A link of these kinds names the site, and nothing is fetched.
NAMING = {"canonical", "next", "prev", "alternate"}
STYLE = re.compile(r"(?:url\(|@import )['\"]?(?:https?:)?//")


class _Page(HTMLParser):
    """Collects what one page fetches from another host."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        value = given.get(FETCHED.get(tag, "")) or ""
        if value.startswith(("http:", "https:", "//")) and given.get("rel") not in NAMING:
            self.found.append(value)


def foreign(html: str) -> list[str]:
    page = _Page()
    page.feed(html)
    return page.found


def problems(folder: Path) -> list[str]:
    """One line for each thing that is wrong with the site."""
    found = [
        f"{page.relative_to(folder)}: fetches {value}"
        for page in sorted(folder.rglob("*.html"))
        if "repository" not in page.relative_to(folder).parts[:1]
        for value in foreign(page.read_text(encoding="utf-8"))
    ]
    found += [
        f"{sheet.relative_to(folder)}: fetches from another host"
        for sheet in sorted(folder.rglob("*.css"))
        if STYLE.search(sheet.read_text(encoding="utf-8"))
    ]
    if not (folder / "index.html").exists():
        found.append("there is no index.html")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(bool(wrong))
