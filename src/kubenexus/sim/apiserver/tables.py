"""Tables: the server-side printing of objects for `kubectl get`."""

from collections.abc import Callable
from typing import Any

from kubenexus.sim.apiserver.http_types import Request
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.listing import Page
from kubenexus.sim.apiserver.object_store import decode, encode
from kubenexus.sim.apiserver.printers import NONE, PRINTERS, UNKNOWN, at, duration, seconds_since
from kubenexus.sim.apiserver.status_errors import Json

_AGES = {"Age", "Created At"}


def wanted(request: Request) -> bool:
    """Whether the client asks for a table."""
    accept = request.headers.get("accept", "")
    return "as=Table" in accept and "g=meta.k8s.io" in accept


def of_page(kind: ServedKind, page: Page, request: Request, now: float) -> Json:
    meta: Json = {"resourceVersion": str(page.version)}
    if page.next:
        meta |= {"continue": page.next} | ({"remainingItemCount": page.left} if page.left is not None else {})
    rows = [_row(kind, decode(data), request, now) for _, data in page.items]
    return _table(meta, _columns(kind), rows)


def of_object(kind: ServedKind, data: bytes, request: Request, now: float | None = None) -> Json:
    item = decode(data)
    meta = {"resourceVersion": item["metadata"].get("resourceVersion", "")}
    return _table(meta, _columns(kind), [_row(kind, item, request, now)])


def renderer(kind: ServedKind, request: Request, now: Callable[[], float]) -> Callable[[bytes], bytes]:
    """Returns the encoder for the events of a watch. Only the first table contains the column definitions."""
    told = False

    def render(data: bytes) -> bytes:
        nonlocal told
        table = of_object(kind, data, request, now())
        if told:
            table["columnDefinitions"] = None
        told = True
        return encode(table)

    return render


def _table(meta: Json, columns: list[Json], rows: list[Json]) -> Json:
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    return {**head, "columnDefinitions": columns, "rows": rows}


def _columns(kind: ServedKind) -> list[Json]:
    return [{key: value for key, value in each.items() if key != "jsonPath"} for each in kind.columns]


def _row(kind: ServedKind, item: Json, request: Request, now: float | None) -> Json:
    cells = [_cell(kind, column, item, now) for column in kind.columns]
    return {"cells": cells, "object": _object(kind, item, request.query.get("includeObject", "Metadata"))}


def _object(kind: ServedKind, item: Json, how: str) -> Json | None:
    if how == "None":
        return None
    if how == "Object":
        return {"kind": kind.kind, "apiVersion": kind.group_version, **item}
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}


def _cell(kind: ServedKind, column: Json, item: Json, now: float | None) -> Any:
    name = column["name"]
    if "jsonPath" in column:
        value = at(item, column["jsonPath"])
        return duration(_since(value, now)) if column["type"] == "date" else value
    printer = PRINTERS.get(kind.store, {}).get(name)
    if printer is None:
        return _usual(name, item, now)
    value = at(item, printer) if isinstance(printer, str) else printer(item)
    return NONE if value is None else value


def _usual(name: str, item: Json, now: float | None) -> Any:
    head = item["metadata"]
    if name == "Name":
        return head["name"]
    if name in _AGES:
        return head["creationTimestamp"] if name == "Created At" else duration(_since(head["creationTimestamp"], now))
    if name in {"Last Seen", "First Seen"}:
        return duration(_since(_seen_at(item, name), now))
    return UNKNOWN if name == "Versions" else NONE


def _seen_at(event: Json, name: str) -> Any:
    first = event.get("firstTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return (event.get("lastTimestamp") or first) if name == "Last Seen" else first


def _since(text: Any, now: float | None) -> float | None:
    return None if now is None else seconds_since(text, now)
