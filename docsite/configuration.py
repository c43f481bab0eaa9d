"""The page of the configuration: every field with its type and default, from the structs that read the file."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from docsite.tables import table
from kubenexus.config.args import KINDS
from kubenexus.config.durations import Duration
from kubenexus.config.v1 import KubeSchedulerConfiguration

HEAD = """# Configuration, field by field

[configuration.md](../configuration.md) explains what you probably want, and what our own settings mean. This page lists
every field that is read. `kubenexus config defaults` prints a whole file with what holds by default, and
`kubenexus config validate FILE` reports what is wrong with yours.
"""
DEFAULTS = (str, int, float, bool)


def page() -> str:
    parts = [HEAD, "## KubeSchedulerConfiguration\n", fields(KubeSchedulerConfiguration)]
    parts.append("\n## Arguments of plugins\n\nIn `profiles[].pluginConfig[].args`, by the name of the plugin.\n")
    for name, kind in sorted(KINDS.items()):
        parts += [f"### {name}\n", fields(kind), ""]
    return "\n".join(parts)


def fields(kind: type) -> str:
    return table(("field", "type", "default"), rows(msgspec.inspect.type_info(kind), ""))


def rows(info: Any, prefix: str, depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """The fields of a struct, those of structs within it below them, to the depth that a person writes."""
    for field in info.fields:
        if field.encode_name in ("apiVersion", "kind"):
            continue
        path = f"{prefix}{field.encode_name}"
        inner, name = described(field.type)
        yield f"`{path}`", name, default(field)
        if inner is not None and depth < 3 and not is_of_kubernetes(inner):
            yield from rows(inner, f"{path}[]." if name.startswith("list") else f"{path}.", depth + 1)


def is_of_kubernetes(info: Any) -> bool:
    """Whether a struct is one of Kubernetes' own, which its documentation describes."""
    return bool(info.cls.__module__.startswith("kubenexus.api"))


def described(info: Any) -> tuple[Any, str]:
    """The struct within a type, if there is one, and the type in words."""
    inspect = msgspec.inspect
    if isinstance(info, inspect.Metadata):
        return described(info.type)
    if isinstance(info, inspect.UnionType):
        kinds = [each for each in info.types if not isinstance(each, inspect.NoneType)]
        return described(kinds[0])
    if isinstance(info, inspect.ListType):
        inner, name = described(info.item_type)
        return inner, f"list of {name}"
    if isinstance(info, inspect.DictType):
        return None, "map"
    if isinstance(info, inspect.StructType):
        return info, words(info.cls.__name__)
    if isinstance(info, inspect.CustomType):
        return None, words(info.cls.__name__).lower()
    names = {inspect.IntType: "whole number", inspect.FloatType: "number", inspect.BoolType: "true or false"}
    return None, names.get(type(info), "text")


def words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)


def default(field: Any) -> str:
    if isinstance(field.default, bool):
        return str(field.default).lower()
    if isinstance(field.default, DEFAULTS) and field.default != "":
        return f"`{field.default}`"
    return f"`{field.default}`" if isinstance(field.default, Duration) else ""
