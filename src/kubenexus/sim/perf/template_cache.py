"""Caches templates: each file is read once, and one that does not depend on the index is parsed once."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubenexus.sim.apiserver import schemas
from kubenexus.sim.apiserver.kinds import Registry
from kubenexus.sim.perf.files import InvalidWorkload
from kubenexus.sim.perf.goexpr import BadTemplate
from kubenexus.sim.perf.gotext import GoTemplate

Item = dict[str, Any]


class TemplateCache:
    """The templates of one workload; `registry` has the kinds of its server. Raises InvalidWorkload."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._templates: dict[Path, GoTemplate] = {}
        self._plain: dict[Path, Item] = {}  # of templates without actions
        self._parsed: dict[tuple[Path, bytes], Item] = {}

    def item(self, path: Path, params: dict[str, Any] | None = None, index: int = 0, count: int = 1) -> Item:
        """Returns the object of a template. It may be shared: the caller must copy it before changing it."""
        template = self._template(path)
        if not template.names and (plain := self._plain.get(path)) is not None:
            return plain
        environment = {**(params or {}), "Index": index, "Count": count}
        used = {name: value for name, value in environment.items() if name in template.names}
        mark = (path, msgspec.json.encode(used))
        found = self._parsed.get(mark)
        if found is None:
            found = self._made(path, template, environment)
            if "Index" not in used:
                self._parsed[mark] = found
            if not template.names:
                self._plain[path] = found
        return found

    def _template(self, path: Path) -> GoTemplate:
        found = self._templates.get(path)
        if found is None:
            try:
                found = self._templates[path] = GoTemplate(path.read_text(encoding="utf-8"))
            except OSError as error:
                raise InvalidWorkload(f"{path}: {error.strerror}") from None
            except BadTemplate as error:
                raise InvalidWorkload(f"{path}: {error}") from None
        return found

    def _made(self, path: Path, template: GoTemplate, environment: dict[str, Any]) -> Item:
        try:
            item = yaml.load(template.render(environment), yaml.CSafeLoader)
        except BadTemplate as error:
            raise InvalidWorkload(f"{path}: {error}") from None
        except yaml.YAMLError as error:
            raise InvalidWorkload(f"{path}: not YAML: {' '.join(str(error).split())}") from None
        if not isinstance(item, dict) or not item.get("kind"):
            raise InvalidWorkload(f"{path}: expected one object with a kind")
        kind = self._registry.of_object(item.get("apiVersion", ""), item["kind"])
        schema = None if kind is None else schemas.schema_of(kind)
        if schema is None:
            return item
        made: Item = _spelled(schema, item, path, "")
        return made


def _spelled(schema: schemas.Schema, seen: Any, path: Path, at: str) -> Any:
    """Returns the object with its fields spelled as in the API: Go ignores the case of field names."""
    schema = schemas.resolved(schema)
    if isinstance(seen, list):
        return [_spelled(schema.get("items") or {}, each, path, f"{at}[{i}]") for i, each in enumerate(seen)]
    if not isinstance(seen, dict):
        return seen
    properties = schema.get("properties")
    spelled = {}
    for key, value in seen.items():
        name = key if properties is None or key in properties else key[:1].lower() + key[1:]
        if properties is not None and name not in properties:
            raise InvalidWorkload(f'{path}: unknown field "{at}.{key}"'.replace('".', '"'))
        spelled[name] = _spelled(schemas.field(schema, name) or {}, value, path, f"{at}.{name}")
    return spelled
