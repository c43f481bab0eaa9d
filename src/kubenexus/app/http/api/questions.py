"""Questions to the live API that `explain` answers: about jobs that wait, or that do not exist yet."""

from typing import Protocol, TypeVar

import msgspec

from kubenexus.app.http.api.documents import WhatIfRequest
from kubenexus.app.http.api.pages import PageQuery

State_contra = TypeVar("State_contra", contravariant=True)


class ReaderRights(msgspec.Struct, frozen=True):
    """`nodes`: the reader may list nodes. `all_pods`: the reader may list the pods of all namespaces."""

    nodes: bool = False
    all_pods: bool = False


class ExplainQuery(msgspec.Struct, frozen=True):
    """A pod, a gang, or an object that made pods, as `kubectl nexus why` takes it."""

    namespace: str
    name: str
    kind: str = ""
    nodes: int = 5
    rights: ReaderRights = ReaderRights()


class EtaQuery(msgspec.Struct, frozen=True):
    """A pod, a gang, or an object that made pods; without a name all jobs of the page."""

    page: PageQuery
    name: str = ""
    kind: str = ""


class WhatIfQuery(msgspec.Struct, frozen=True):
    """`namespace` is that of objects without one, and the only one unless the reader may list all pods."""

    namespace: str
    request: WhatIfRequest
    rights: ReaderRights = ReaderRights()


class LiveQuestions(Protocol[State_contra]):
    """Each is called in a copy of the process and may change the state there: a scheduler's, or a cluster that was
    read. Returns JSON, or raises RequestProblem."""

    def explain(self, state: State_contra, query: ExplainQuery, now: float) -> bytes: ...

    def whatif(self, state: State_contra, query: WhatIfQuery, now: float) -> bytes: ...

    def devices(self, state: State_contra, query: PageQuery, node: str) -> bytes: ...

    def jobs(self, state: State_contra, query: PageQuery) -> bytes: ...

    def eta(self, state: State_contra, query: EtaQuery, now: float) -> bytes: ...

    def queues(self, state: State_contra, query: PageQuery) -> bytes: ...

    def nodes(self, state: State_contra, query: PageQuery) -> bytes: ...

    def gangs(self, state: State_contra, query: PageQuery, name: str, rights: ReaderRights) -> bytes: ...

    def map(self, state: State_contra, namespace: str) -> bytes: ...
