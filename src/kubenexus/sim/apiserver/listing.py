"""Lists: query options, pages, and the state at a version."""

import base64
from bisect import bisect_left

import msgspec

from kubenexus.sim.apiserver import selecting
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.object_store import ObjectStore
from kubenexus.sim.apiserver.status_errors import (
    FieldError,
    StatusError,
    bad_request,
    forbidden,
    invalid_options,
    unsupported,
)
from kubenexus.sim.apiserver.store import Collection, Compacted

_MATCH = "resourceVersionMatch"


class Query(msgspec.Struct, frozen=True):
    """The ListOptions of a request."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    start: str = ""  # the continue token
    version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial: bool | None = None  # sendInitialEvents
    seconds: int = 0


class Page(msgspec.Struct):
    """Objects as stored, in the order of their keys, with the version of the list."""

    version: int
    items: list[tuple[str, bytes]]
    next: str = ""
    left: int | None = None


def read_query(said: dict[str, str]) -> Query:
    """Reads the options of a list or a watch. Raises StatusError."""
    query = Query(
        labels=said.get("labelSelector", ""),
        fields=said.get("fieldSelector", ""),
        limit=max(_number(said.get("limit", "")), 0),
        start=said.get("continue", ""),
        version=said.get("resourceVersion", ""),
        match=said.get(_MATCH, ""),
        watch=_truth(said.get("watch", "")),
        bookmarks=_truth(said.get("allowWatchBookmarks", "")),
        initial=_truth(said["sendInitialEvents"]) if "sendInitialEvents" in said else None,
        seconds=_seconds(said.get("timeoutSeconds", "")),
    )
    flaws = _watch_flaws(query) if query.watch else _list_flaws(query)
    if flaws:
        raise invalid_options("ListOptions", *flaws)
    return query


def _number(text: str) -> int:
    try:
        return int(text) if text else 0
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _seconds(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _truth(text: str) -> bool:
    return text in {"1", "true", "True", "TRUE", "t", "T"}


def _list_flaws(query: Query) -> list[FieldError]:
    flaws = []
    if query.initial is not None:
        flaws.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if query.match:
        if query.start:
            flaws.append(forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
        elif not query.version:
            flaws.append(forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
        elif query.match not in {"Exact", "NotOlderThan"}:
            flaws.append(unsupported(_MATCH, query.match, ("Exact", "NotOlderThan", "")))
        elif query.match == "Exact" and query.version == "0":
            flaws.append(forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"'))
    return flaws


def _watch_flaws(query: Query) -> list[FieldError]:
    flaws = []
    if query.initial is not None and query.match != "NotOlderThan":
        flaws.append(forbidden(_MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan"))
    if query.match and query.initial is None:
        why = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
        flaws.append(forbidden(_MATCH, why))
    if query.match not in {"", "NotOlderThan"}:
        flaws.append(unsupported(_MATCH, query.match, ("NotOlderThan",)))
    return flaws


# ---- pages -----------------------------------------------------------------------------------------------------------


def page(core: ObjectStore, kind: ServedKind, namespace: str, query: Query) -> Page:
    """Returns the objects of a list. Raises StatusError."""
    matches = selecting.matcher(kind, query.labels, query.fields)
    version, after = _from_token(query.start) if query.start else (_version(core, query), "")
    collection = core.store.collection(kind.store)
    exact = version if query.start or query.match == "Exact" else core.store.version
    objects, keys = _state(core, collection, exact, bool(query.start))
    if namespace:
        keys = _below(keys, f"{namespace}/")
    keys = keys[bisect_left(keys, after + "\0") :] if after else keys
    if matches is None and not query.limit:
        return Page(exact, [(key, objects[key]) for key in keys])
    return _selected(Page(exact, []), keys, objects, matches, query)


def _selected(
    found: Page, keys: list[str], objects: dict[str, bytes], matches: selecting.Matches | None, query: Query
) -> Page:
    for index, key in enumerate(keys):
        if query.limit and len(found.items) == query.limit:
            found.next = _token(found.version, found.items[-1][0])
            # As in a real server, the remaining count is known only without a selector.
            found.left = len(keys) - index if matches is None else None
            break
        data = objects[key]
        if matches is None or matches(data):
            found.items.append((key, data))
    return found


def _state(core: ObjectStore, collection: Collection, version: int, paging: bool) -> tuple[dict[str, bytes], list[str]]:
    if version == core.store.version:
        return collection.objects, collection.keys()
    try:
        objects = collection.at(version)
    except Compacted:
        raise expired(paging) from None
    return objects, sorted(objects)


def _below(keys: list[str], prefix: str) -> list[str]:
    return keys[bisect_left(keys, prefix) : bisect_left(keys, prefix[:-1] + "0")]  # `0` follows `/`


def _version(core: ObjectStore, query: Query) -> int:
    if not query.version:
        return core.store.version
    if not query.version.isdigit():
        why = f'resourceVersion: Invalid value: "{query.version}": strconv.ParseUint: parsing "{query.version}"'
        raise bad_request(f"invalid resource version: {why}: invalid syntax")
    wanted = int(query.version)
    if wanted > core.store.version:
        raise too_large(core, wanted)
    return wanted


def too_large(core: ObjectStore, wanted: int) -> StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {wanted}, current: {core.store.version}"
    return StatusError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def expired(paging: bool) -> StatusError:
    if paging:
        why = (
            "The provided continue parameter is too old to display a consistent list result. You can start a new list "
            "without the continue parameter."
        )
        return StatusError(410, "Expired", why)
    return StatusError(410, "Expired", "The resourceVersion for the provided list is too old.")


def _token(version: int, last: str) -> str:
    text = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": version, "start": f"{last}\0"})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _from_token(text: str) -> tuple[int, str]:
    try:
        seen = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return int(seen["rv"]), str(seen["start"]).removesuffix("\0")
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        why = "continue key is not valid: illegal base64 data at input byte 0"
        raise bad_request(f"invalid continue token: {why}") from None
