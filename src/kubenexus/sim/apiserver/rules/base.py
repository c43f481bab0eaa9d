"""The contract of a kind's rules."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from kubenexus.sim.apiserver import names
from kubenexus.sim.apiserver.status_errors import FieldError, Json


class ClusterReader(Protocol):
    """What rules may ask about everything else. Reading only."""

    def now(self) -> str:
        """The time as `metav1.Time` writes it."""

    def find(self, resource: str, key: str) -> Json | None:
        """An object by the name of its collection: `priorityclasses.scheduling.k8s.io`."""

    def all(self, resource: str, namespace: str = "", holding: bytes = b"") -> list[Json]:
        """All objects of a collection, decoded; with `holding` only those whose text has it in it."""

    def number(self, below: int) -> int:
        """Chance, from outside."""

    def admits(self, plugin: str) -> bool:
        """Whether an admission plugin is on, by kube-apiserver's name for it (`--disable-admission-plugins`)."""


def nothing(*_: Any) -> None:
    pass


def spec_of(item: Json) -> Any:
    return item.get("spec")


def no_errors(*_: Any) -> list[FieldError]:
    return []


class Rule(msgspec.Struct, frozen=True):
    """How one kind behaves. Defaults are those of most kinds."""

    # Fills what was left out. Called before anything is checked, on create and on update.
    default: Callable[[Json], None] = nothing
    # What the server itself sets on a new object; may raise Refusal (priority classes).
    admit: Callable[[Json, ClusterReader], None] = nothing
    # The same on an update: (new, old, world).
    admit_update: Callable[[Json, Json, ClusterReader], None] = nothing
    # Everything that is wrong with an object.
    check: Callable[[Json], list[FieldError]] = no_errors
    # Everything that is wrong with the change from old to new: (new, old).
    check_update: Callable[[Json, Json], list[FieldError]] = no_errors
    # Everything that is wrong with a new status: (new, old).
    check_status: Callable[[Json, Json], list[FieldError]] = no_errors
    # The status of a new object; None: what the client sent stays.
    status: Callable[[Json], Json] | None = None
    name: Callable[[str], str] = names.subdomain
    unconditional: bool = True  # an update needs no resourceVersion
    create_on_update: bool = False  # PUT makes what is not there
    returns_deleted: bool = False  # DELETE answers with the object, else with a Status
    generation: bool = False  # metadata.generation counts changes,
    counted: Callable[[Json], Any] = spec_of  # namely of this
    graceful: bool = False  # pods
