"""The files of the page, read once. A request names one of them or gets 404: no path of a request reaches the disk."""

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(NamedTuple):
    body: bytes
    content_type: str
    etag: str


def load_assets(folder: Path = FOLDER) -> dict[str, Asset]:
    """Returns the files by name. Files of other types are not part of the page."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in _TYPES:
            body = path.read_bytes()
            found[path.name] = Asset(body, _TYPES[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:16]}"')
    return found
