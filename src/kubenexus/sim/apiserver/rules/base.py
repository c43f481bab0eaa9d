"""The contract of a kind's rules."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from kubenexus.sim.apiserver import names
from kubenexus.sim.apiserver.status_errors import FieldError, Json


class ClusterReader(Protocol):
    """What rules may read of the rest of the cluster."""

    def now(self) -> str:
        """Returns the time as `metav1.Time` writes it."""

    def find(self, resource: str, key: str) -> Json | None:
        """Returns an object by its key; `resource` names its collection: `priorityclasses.scheduling.k8s.io`."""

    def all(self, resource: str, namespace: str = "", holding: bytes = b"") -> list[Json]:
        """Returns all objects of a collection, decoded; with `holding` only those whose encoded text contains it."""

    def number(self, below: int) -> int:
        """Returns a random number from an injected generator."""

    def admits(self, plugin: str) -> bool:
        """Whether an admission plugin is enabled, by kube-apiserver's name for it (`--disable-admission-plugins`)."""

    def has_gate(self, gate: str) -> bool:
        """Whether a feature gate is on that is off by default (`--feature-gates`)."""


def nothing(*_: Any) -> None:
    pass


def spec_of(item: Json) -> Any:
    return item.get("spec")


def no_errors(*_: Any) -> list[FieldError]:
    return []


class Rule(msgspec.Struct, frozen=True):
    """The behaviour of one kind. The defaults fit most kinds."""

    # Sets defaults. Called before the checks, on create and on update.
    default: Callable[[Json], None] = nothing
    # Sets what the server adds to a new object; may raise StatusError (priority classes).
    admit: Callable[[Json, ClusterReader], None] = nothing
    # The same on an update: (new, old, cluster).
    admit_update: Callable[[Json, Json, ClusterReader], None] = nothing
    # Returns all errors of an object.
    check: Callable[[Json], list[FieldError]] = no_errors
    # Returns all errors of the change from old to new: (new, old).
    check_update: Callable[[Json, Json], list[FieldError]] = no_errors
    # Returns all errors of a new status: (new, old).
    check_status: Callable[[Json, Json], list[FieldError]] = no_errors
    # Returns the status of a new object; None: the client's status stays.
    status: Callable[[Json], Json] | None = None
    name: Callable[[str], str] = names.subdomain
    unconditional: bool = True  # an update needs no resourceVersion
    create_on_update: bool = False  # PUT creates a missing object
    returns_deleted: bool = False  # DELETE returns the object, otherwise a Status
    generation: bool = False  # metadata.generation counts changes
    counted: Callable[[Json], Any] = spec_of  # of this part
    graceful: bool = False  # deletion has a grace period: pods
