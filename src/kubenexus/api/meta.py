"""The metadata of every Kubernetes object: name, namespace, identity, labels and annotations."""

from typing import Annotated, dataclass_transform

import msgspec

# Upstream's integers have a size. A number beyond it is a broken object, and must not reach an int64 column.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


# For type checkers: kinds inherit `frozen` and `kw_only` from here.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class ApiObject(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """The base of all API types: camelCase in JSON, unknown fields ignored, defaults left out when encoded."""


class OwnerReference(ApiObject):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class ObjectMeta(ApiObject):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    creation_timestamp: str = ""
    deletion_timestamp: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone if the object has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
