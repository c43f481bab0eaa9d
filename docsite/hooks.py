"""The hooks of mkdocs: links from pages to files of the repository lead to copies of them within the site.

Pages are written to be read in the repository, where `../deploy/queues.yaml` is a file beside docs/. In the site such a
file lies below `repository/`: Markdown as a page, anything else as it is, and a folder as a page that lists it. So
strict links hold for them, too, and the site needs no other host.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS, HOME = "docs", "repository"
# A link to a path, with or without a fragment; neither to another site nor to a heading of the page itself.
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)#:\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def slug(text: str, separator: str) -> str:
    """The fragment of a heading, as it is in the repository: small letters, hyphens for blanks, no punctuation."""
    return re.sub(r"[^\w -]", "", text.lower()).replace(" ", separator)


def place(path: str) -> str:
    """Where a path of the repository is in the site."""
    if path == DOCS or path.startswith(f"{DOCS}/"):
        return path.removeprefix(DOCS).lstrip("/")
    return f"{HOME}/{path}"


def source(page: str) -> str:
    """The path in the repository of a page of the site. The inverse of `place`."""
    return page.removeprefix(f"{HOME}/") if page.startswith(f"{HOME}/") else f"{DOCS}/{page}"


def base(page: str) -> str:
    """The folder that links of a page start from. Those of changes/ are written for CHANGELOG.md."""
    return "" if page.startswith("changes/") and not page.endswith("/index.md") else posixpath.dirname(page)


def targets(markdown: str, page: str) -> Iterator[str]:
    """The paths of the repository that a page, named by its path there, has links to."""
    for part in FENCE.split(markdown)[::2]:
        for _, path, _ in LINK.findall(part):
            yield posixpath.normpath(posixpath.join(base(page), path))


def rewritten(markdown: str, page: str) -> str:
    """The text of a page with its links as they are in the site."""
    here = posixpath.dirname(place(page))

    def move(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(base(page), match.group(2)))
        there = place(path) + ("/index.md" if (ROOT / path).is_dir() else "")
        return f"{match.group(1)}{posixpath.relpath(there, here or '.')}{match.group(3) or ''})"

    parts = FENCE.split(markdown)
    return "".join(LINK.sub(move, part) if i % 2 == 0 else part for i, part in enumerate(parts))


def listing(folder: str) -> str:
    """A page for a folder of the repository: links to what is in it."""
    names = sorted(path.name for path in (ROOT / folder).iterdir() if not path.name.startswith(("__", ".")))
    return f"# {folder}\n\n" + "\n".join(f"- [{name}]({name})" for name in names if (ROOT / folder / name).is_file())


def reachable(pages: list[str]) -> set[str]:
    """Every path of the repository outside docs/ that these pages lead to, by any number of links."""
    found: set[str] = set()
    waiting = [target for page in pages for target in targets(text_of(page), page)]
    while waiting:
        path = waiting.pop()
        inside = (path == DOCS or path.startswith(f"{DOCS}/")) and not (ROOT / path).is_dir()
        if inside or path in found or path.startswith(".."):
            continue
        found.add(path)
        if path.endswith(".md"):
            waiting += targets(text_of(path), path)
        elif (ROOT / path).is_dir():
            waiting += targets(listing(path), f"{path}/index.md")
    return found


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def on_files(files: Any, config: Any) -> Any:
    """Adds what pages have links to."""
    from mkdocs.structure.files import File

    for path in sorted(reachable([f"{DOCS}/{each.src_uri}" for each in files.documentation_pages()])):
        if (ROOT / path).is_dir():
            files.append(File.generated(config, f"{place(path)}/index.md".lstrip("/"), content=listing(path)))
        elif (ROOT / path).exists():
            files.append(File.generated(config, place(path), abs_src_path=str(ROOT / path)))
    for each in files:
        if each.src_uri.startswith(f"{HOME}/"):
            each.inclusion = type(each.inclusion).NOT_IN_NAV
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return rewritten(markdown, source(page.file.src_uri))


def on_nav(nav: Any, **_: Any) -> Any:
    return nav
