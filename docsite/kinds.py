"""The page of our own kinds, from the CustomResourceDefinitions that are installed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from docsite.tables import table

DEPLOY = Path(__file__).parents[1] / "deploy"
FILES = {"resourcereservations.yaml": "../reservations.md", "queues.yaml": "../queues.md"}
HEAD = """# Our own kinds

Both are optional. The chart installs them, and keeps them with their objects when it is uninstalled.
"""


def page() -> str:
    return "\n".join([HEAD, *(section(file, link) for file, link in FILES.items())])


def section(file: str, link: str) -> str:
    (definition,) = definitions(file)
    spec = definition["spec"]
    (version,) = spec["versions"]
    short = ", ".join(f"`{each}`" for each in spec["names"].get("shortNames", ()))
    about = (
        f"`{spec['group']}/{version['name']}`, {'one for the cluster' if spec['scope'] == 'Cluster' else 'namespaced'}"
    )
    about += f"; short name {short}" if short else ""
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    found = [row for part in ("spec", "status") if part in properties for row in rows(part, properties[part])]
    fields = table(("field", "type", "meaning"), found)
    return f"## {spec['names']['kind']}\n\n{about}. [How to use it]({link}).\n\n{fields}\n"


def definitions(file: str) -> list[Any]:
    objects = yaml.safe_load_all((DEPLOY / file).read_text(encoding="utf-8"))
    return [each for each in objects if each and each["kind"] == "CustomResourceDefinition"]


def rows(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The fields below one, each with its type, limits and description."""
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        yield f"`{here}`", kind(field, name in required), field.get("description", "")
        yield from rows(here, field)
        if "items" in field:
            yield from rows(f"{here}[]", field["items"])


def kind(field: dict[str, Any], required: bool) -> str:
    words = [str(field.get("format") or field.get("type", "quantity"))]
    if "enum" in field:
        words.append("one of " + ", ".join(f"`{each}`" for each in field["enum"]))
    for limit, text in {
        "minimum": "from",
        "maximum": "up to",
        "maxItems": "at most",
        "maxProperties": "at most",
    }.items():
        if limit in field:
            words.append(f"{text} {field[limit]}")
    return ", ".join([*words, *(["required"] if required else [])])
