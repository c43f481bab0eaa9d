"""Server-side apply: tracks the manager of each field, and rejects a change of another manager's field without force.

Only objects that were applied at least once have managedFields here. Fields set before the first apply belong to
`before-first-apply`, which a real server uses for objects older than the feature.
"""

from typing import Any

from kubenexus.sim.apiserver import schemas
from kubenexus.sim.apiserver.patches import field_sets
from kubenexus.sim.apiserver.patches.field_sets import Fields, Path
from kubenexus.sim.apiserver.schemas import Schema
from kubenexus.sim.apiserver.status_errors import Json, StatusError

BEFORE = "before-first-apply"


class Applied:
    """One apply: the resulting object and its new field managers."""

    def __init__(self, old: Json | None, wanted: Json, schema: Schema | None, manager: str, sub: str) -> None:
        self._old, self._wanted, self._schema = old, wanted, schema
        self._manager, self._sub = manager, sub
        self._others = _owners(old, schema) if old is not None else []
        self._mine = {path for path in field_sets.leaves(field_sets.fields_of(wanted, schema)) if self._in_scope(path)}

    def result(self, version: str, now: str, *, force: bool) -> Json:
        """Returns the new object with its managedFields. Raises StatusError (409) if other managers own changed
        fields."""
        taken = self._conflicts()
        if taken and not force:
            raise _conflict(taken)
        merged = self._merged()
        entries = self._entries(version, now, {path for path, _ in taken})
        merged.setdefault("metadata", {})["managedFields"] = entries
        return merged

    def _in_scope(self, path: Path) -> bool:
        is_status = path[0] == "f:status"
        return is_status if self._sub == "status" else not is_status

    def _is_mine(self, entry: Json) -> bool:
        who = (entry["manager"], entry["operation"], entry.get("subresource", ""))
        return who == (self._manager, "Apply", self._sub)

    def _conflicts(self) -> list[tuple[Path, str]]:
        found = []
        for entry in self._others:
            if not self._is_mine(entry):
                paths = set(field_sets.leaves(entry["fieldsV1"])) & self._mine
                found += [(path, _who(entry)) for path in sorted(paths) if self._differs(path)]
        return found

    def _differs(self, path: Path) -> bool:
        return bool(field_sets.value_at(self._old, path) != field_sets.value_at(self._wanted, path))

    def _merged(self) -> Json:
        merged: Json = self._old if self._old is not None else {}
        for path in sorted(self._dropped(), key=len, reverse=True):
            field_sets.remove(merged, path)
        wanted = {key: value for key, value in self._wanted.items() if key not in field_sets.SKIPPED}
        result: Json = _merge(merged, wanted, self._schema)
        return result

    def _dropped(self) -> set[Path]:
        """Returns the fields that this manager set before, does not set now, and shares with no other manager."""
        before: set[Path] = set()
        for entry in self._others:
            if self._is_mine(entry):
                before |= set(field_sets.leaves(entry["fieldsV1"])) | _entries_of(entry["fieldsV1"])
        kept = self._mine | _entries_of(field_sets.fields_of(self._wanted, self._schema))
        gone = before - kept
        for entry in self._others:
            if not self._is_mine(entry):
                gone -= set(field_sets.leaves(entry["fieldsV1"])) | _entries_of(entry["fieldsV1"])
        return gone

    def _entries(self, version: str, now: str, taken: set[Path]) -> list[Json]:
        entries = []
        for entry in self._others:
            if not self._is_mine(entry):
                left = set(field_sets.leaves(entry["fieldsV1"])) - taken
                if left:
                    entries.append({**entry, "fieldsV1": field_sets.build(left)})
        mine: Json = {"manager": self._manager, "operation": "Apply", "apiVersion": version, "time": now}
        mine |= {"fieldsType": "FieldsV1", "fieldsV1": field_sets.build(self._mine)}
        if self._sub:
            mine["subresource"] = self._sub
        before = [entry for entry in self._others if self._is_mine(entry)]
        return sorted([*entries, _unless_same(mine, before)], key=_rank)


def _rank(entry: Json) -> tuple[str, str, str]:
    return entry["operation"], entry.get("time", ""), entry["manager"]


def _unless_same(mine: Json, before: list[Json]) -> Json:
    """Keeps the old entry if the fields are unchanged, so that a repeated apply changes nothing."""
    if before and before[0]["fieldsV1"] == mine["fieldsV1"]:
        return before[0]
    return mine


def _entries_of(fields: Fields, at: Path = ()) -> set[Path]:
    """Returns the paths of list entries, which are owned besides their fields."""
    found: set[Path] = set()
    for key, inner in fields.items():
        if key.startswith("k:"):
            found.add((*at, key))
        if inner:
            found |= _entries_of(inner, (*at, key))
    return found


def _owners(old: Json, schema: Schema | None) -> list[Json]:
    known: list[Json] = old.get("metadata", {}).get("managedFields") or []
    if known:
        return known
    everything = field_sets.fields_of(old, schema)
    everything.pop("f:status", None)
    entry = {"manager": BEFORE, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": everything}
    return [entry]


def updated(new: Json, old: Json, schema: Schema | None, entry: Json) -> None:
    """Transfers changed fields to the manager of an update, if the object was applied before."""
    known: list[Json] = old["metadata"].get("managedFields") or []
    if not known:
        return
    before = set(field_sets.leaves(field_sets.fields_of(old, schema)))
    after = set(field_sets.leaves(field_sets.fields_of(new, schema)))
    moved = {path for path in after if path not in before or _moved(path, new, old)}
    entries = []
    for each in known:
        left = set(field_sets.leaves(each["fieldsV1"])) & after
        same = each["manager"] == entry["manager"] and each["operation"] == "Update"
        left = left | moved if same else left - moved
        if left:
            entries.append({**each, "fieldsV1": field_sets.build(left)})
    if moved and not any(each["manager"] == entry["manager"] and each["operation"] == "Update" for each in known):
        entries.append({**entry, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": field_sets.build(moved)})
    new["metadata"]["managedFields"] = entries


def _moved(path: Path, new: Json, old: Json) -> bool:
    return bool(field_sets.value_at(new, path) != field_sets.value_at(old, path))


# ---- merging ---------------------------------------------------------------------------------------------------------


def _merge(old: Any, wanted: Any, schema: Schema | None) -> Any:
    if isinstance(old, dict) and isinstance(wanted, dict) and not field_sets.atomic(schema):
        for key, value in wanted.items():
            old[key] = _merge(old.get(key), value, schemas.field(schema, key))
        return old
    if isinstance(old, list) and isinstance(wanted, list):
        return _merge_lists(old, wanted, schema)
    return wanted


def _merge_lists(old: list[Any], wanted: list[Any], schema: Schema | None) -> list[Any]:
    if field_sets.list_type(schema) == "set":
        return [*old, *(each for each in wanted if each not in old)]
    keys = field_sets.list_keys(schema)
    if not keys:
        return wanted
    found = list(old)
    for each in wanted:
        name = field_sets.mark(each, keys)
        place = next((n for n, other in enumerate(found) if field_sets.mark(other, keys) == name), None)
        if place is None:
            found.append(each)
        else:
            found[place] = _merge(found[place], each, schemas.items(schema))
    return found


# ---- conflicts -------------------------------------------------------------------------------------------------------


def _who(entry: Json) -> str:
    how = "" if entry["operation"] == "Apply" else f" using {entry.get('apiVersion', 'v1')}"
    return f'"{entry["manager"]}"{how}'


def _shown(path: Path) -> str:
    text = ""
    for part in path:
        kind, _, name = part.partition(":")
        text += (
            f".{name}"
            if kind == "f"
            else f"[{name.strip('{}').replace(chr(34) + ':', chr(34) + '=').replace(chr(34), '', 2)}]"
        )
    return text


def _conflict(taken: list[tuple[Path, str]]) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": _shown(path)}
        for path, who in taken
    ]
    whom = sorted({who for _, who in taken})
    fields = ", ".join(_shown(path) for path, _ in taken)
    count = f"{len(taken)} conflict" + ("s" if len(taken) > 1 else "")
    message = f"Apply failed with {count}: conflicts with {', '.join(whom)}: {fields}"
    return StatusError(409, "Conflict", message, {"causes": causes})
