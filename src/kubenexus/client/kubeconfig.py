"""Kubeconfig files: reads them, merges them as kubectl does, and selects one context.

Of several files (`$KUBECONFIG`) the first that defines a name, or sets the current context, wins; missing files are
skipped. Relative paths are relative to the file that has them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from kubenexus.api.codec import from_data
from kubenexus.base.errors import Malformed, truncated
from kubenexus.client.credentials import ClientConfigError
from kubenexus.client.kubeconfig_user import ClusterEntry, ContextEntry, KubeconfigUser, UserEntry

T = TypeVar("T")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NamedCluster(msgspec.Struct, frozen=True):
    name: str = ""
    cluster: ClusterEntry = ClusterEntry()


class NamedContext(msgspec.Struct, frozen=True):
    name: str = ""
    context: ContextEntry = ContextEntry()


class NamedUser(msgspec.Struct, frozen=True):
    name: str = ""
    user: UserEntry = UserEntry()


class KubeconfigFile(msgspec.Struct, frozen=True, rename="kebab"):
    """One kubeconfig file."""

    current_context: str = ""
    clusters: list[NamedCluster] = []
    contexts: list[NamedContext] = []
    users: list[NamedUser] = []


class LocatedEntry(msgspec.Struct, Generic[T], frozen=True):
    """An entry and its place in a file, for messages and for relative paths."""

    value: T
    file: str
    at: str


class MergedKubeconfig(msgspec.Struct, frozen=True):
    """All files merged."""

    source: str
    current: str
    clusters: dict[str, LocatedEntry[ClusterEntry]]
    contexts: dict[str, LocatedEntry[ContextEntry]]
    users: dict[str, LocatedEntry[UserEntry]]


def kubeconfig_paths(named: str, env: Mapping[str, str]) -> list[str]:
    """Returns the files to read; none if no option or variable names any and the default does not exist."""
    if named:
        return [named]
    if env.get("KUBECONFIG"):
        return [path for path in env["KUBECONFIG"].split(os.pathsep) if path]
    home = Path(env.get("HOME") or "/nowhere") / ".kube" / "config"
    return [str(home)] if home.is_file() else []


def load_kubeconfig(files: list[str]) -> MergedKubeconfig:
    """Reads and merges files. Raises ClientConfigError; a missing file is an error only if it is the only one."""
    source = "kubeconfig " + os.pathsep.join(files)
    merged = MergedKubeconfig(source, "", {}, {}, {})
    for path in files:
        document = _read(path, required=len(files) == 1)
        if document is None:
            continue
        _add(merged.clusters, path, "clusters", [(each.name, each.cluster) for each in document.clusters])
        _add(merged.contexts, path, "contexts", [(each.name, each.context) for each in document.contexts])
        _add(merged.users, path, "users", [(each.name, each.user) for each in document.users])
        if not merged.current:
            merged = msgspec.structs.replace(merged, current=document.current_context)
    return merged


def select_context(merged: MergedKubeconfig, context: str = "") -> KubeconfigUser:
    """Returns the cluster and user of a context, of the current one if `context` is empty."""
    name = context or merged.current
    if not name:
        raise ClientConfigError(f"{merged.source}: current-context: not set, and no context was asked for")
    found = merged.contexts.get(name)
    if found is None:
        field = "" if context else "current-context: "
        raise ClientConfigError(f"{merged.source}: {field}no context named {truncated(name)!r}")
    cluster = _named(merged.clusters, found.value.cluster, f"{found.at}.cluster", "cluster")
    nobody = LocatedEntry(UserEntry(), found.file, found.at)
    user = _named(merged.users, found.value.user, f"{found.at}.user", "user") if found.value.user else nobody
    return KubeconfigUser(
        source=f"{merged.source} (context {truncated(name)})",
        namespace=found.value.namespace,
        cluster=cluster.value,
        cluster_at=cluster.at,
        cluster_folder=str(Path(cluster.file).absolute().parent),
        user=user.value,
        user_at=user.at,
        user_folder=str(Path(user.file).absolute().parent),
    )


def _named(entries: dict[str, LocatedEntry[T]], name: str, at: str, what: str) -> LocatedEntry[T]:
    if not name:
        raise ClientConfigError(f"{at}: no {what} is named")
    if name not in entries:
        raise ClientConfigError(f"{at}: no {what} named {truncated(name)!r}")
    return entries[name]


def _add(into: dict[str, LocatedEntry[T]], path: str, field: str, entries: list[tuple[str, T]]) -> None:
    seen: set[str] = set()
    for i, (name, value) in enumerate(entries):
        at = f"kubeconfig {path}: {field}[{i}]"
        if not name:
            raise ClientConfigError(f"{at}.name: missing")
        if name in seen:
            raise ClientConfigError(f"{at}.name: a second entry named {truncated(name)!r}")
        seen.add(name)
        into.setdefault(name, LocatedEntry(value, path, f"{at}.{field[:-1]}"))


def _read(path: str, *, required: bool) -> KubeconfigFile | None:
    try:
        data = yaml.load(Path(path).read_bytes(), Loader=_LOADER)
        return from_data({} if data is None else data, KubeconfigFile)
    except FileNotFoundError:
        if not required:
            return None
        raise ClientConfigError(f"kubeconfig {path}: no such file") from None
    except OSError as error:
        raise ClientConfigError(f"kubeconfig {path}: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ClientConfigError(f"kubeconfig {path}: {_in_words(error)}") from None


def _in_words(error: Exception) -> str:
    if isinstance(error, Malformed):
        return str(error)
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}" if mark is not None else ""
    return f"not YAML: {getattr(error, 'problem', None) or 'unreadable'}{where}"
