"""The server without sockets: from a Request to a Response. Synchronous; never raises because of a request."""

import logging
import random
from collections.abc import Collection, Mapping
from types import MappingProxyType

from kubenexus.base.clock import Clock
from kubenexus.base.errors import Malformed
from kubenexus.sim.apiserver import discovery, openapi, routing
from kubenexus.sim.apiserver.background_controllers import BackgroundControllers
from kubenexus.sim.apiserver.http_types import Request, Response, answer, plain, refused
from kubenexus.sim.apiserver.object_store import ObjectStore, encode
from kubenexus.sim.apiserver.resources import Resources
from kubenexus.sim.apiserver.rules.nodes_and_namespaces import SYSTEM_CLASSES
from kubenexus.sim.apiserver.status_errors import Json, StatusError
from kubenexus.sim.apiserver.store import Store
from kubenexus.sim.apiserver.verbs import Target, WriteOptions, create

log = logging.getLogger(__name__)
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_HEALTH = {"/healthz", "/livez", "/readyz"}


class ApiServer:
    """One cluster.

    With `housekeeping` it also runs the background controllers: garbage collection by owner, emptying of namespaces.
    Call `tidy` to let them work.

    `without` names disabled admission plugins, as kube-apiserver's --disable-admission-plugins: Priority,
    TaintNodesByCondition and StorageObjectInUseProtection are supported. For `gates` and `versions` see
    `optional_kinds`.
    """

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        *,
        store: Store | None = None,
        housekeeping: bool = True,
        token: str = "",
        without: Collection[str] = (),
        gates: Collection[str] = (),
        versions: Mapping[str, bool] = MappingProxyType({}),
    ) -> None:
        self.core = ObjectStore(clock, rng, store, without, gates, versions)
        self._token = f"Bearer {token}" if token else ""
        self._resources = Resources(self.core)
        self._furnish()
        self.housekeeping = BackgroundControllers(self.core, active=housekeeping)

    def handle(self, request: Request) -> Response:
        try:
            return self._known(request) or plain(404, "404 page not found\n")
        except StatusError as refusal:
            return refused(refusal)
        except Malformed as error:
            return refused(StatusError(400, "BadRequest", str(error)))
        except Exception as error:  # an error of ours ends one request, not the cluster
            log.exception("%s %s", request.method, request.path)
            return refused(StatusError(500, "InternalError", f"Internal error occurred: {error!r}"))

    def tidy(self) -> None:
        """Runs the background controllers. May be called at any time from the thread of the event loop."""
        self.housekeeping.run()

    # ---- internals ---------------------------------------------------------------------------------------------------

    def _known(self, request: Request) -> Response | None:
        path = request.path
        if path in _HEALTH or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return plain(200, "ok")
        if self._token and request.header("authorization") != self._token:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        if path == "/openapi/v2" and openapi.wants_v2_protobuf(request.header("accept")):
            return Response(200, openapi.v2_protobuf(), openapi.V2_PROTOBUF)
        _acceptable(request)
        if path.startswith(("/api/", "/apis/")):
            target = routing.find(self.core.registry, path)
            if target is not None:
                return self._resources.serve(target, request)
        if path in {"/api", "/apis"} and discovery.wants_aggregated(request.header("accept")):
            found = discovery.aggregated(self.core.registry, core=path == "/api")
            return Response(200, encode(found), discovery.AGGREGATED)
        document = self._document(path.rstrip("/"), request)
        return None if document is None else answer(200, document)

    def _document(self, path: str, request: Request) -> Json | None:
        registry = self.core.registry
        parts = path.split("/")
        if path == "/api":
            return discovery.versions(request.header("host"))
        if path == "/apis":
            return discovery.groups(registry)
        if path == "/openapi/v2":
            return openapi.v2_document()
        if parts[1] == "openapi" and len(parts) > 2 and parts[2] == "v3":
            where = "/".join(parts[3:])
            return openapi.document(registry, where) if where else openapi.index(registry)
        return _small(path) if len(parts) < 3 else self._listing(parts)

    def _listing(self, parts: list[str]) -> Json | None:
        if parts[1] == "apis" and len(parts) == 3:
            return discovery.group(self.core.registry, parts[2])
        return discovery.resources(self.core.registry, "/".join(parts[2:]))

    def _furnish(self) -> None:
        """Creates the namespaces and priority classes that every cluster has."""
        for name in NAMESPACES:
            self._make("v1", "namespaces", {"metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            text = {"description": "Used for system critical pods that must not be moved from their current node."}
            self._make("scheduling.k8s.io/v1", "priorityclasses", {"metadata": {"name": name}, "value": value, **text})

    def _make(self, group_version: str, resource: str, item: Json) -> None:
        kind = self.core.registry.find(group_version, resource)
        assert kind is not None
        create(self.core, Target(kind), item, WriteOptions())


def _small(path: str) -> Json | None:
    if path == "/version":
        return discovery.VERSION
    if path == "":
        return {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]}
    return None


def _acceptable(request: Request) -> None:
    """Raises StatusError (406) if the client does not accept JSON, the only format."""
    accept = request.headers.get("accept", "")
    if accept and "json" not in accept and "*/*" not in accept and "application/*" not in accept:
        known = "application/json, application/json;stream=watch"
        text = f"406: Not Acceptable\n\nAvailable representations: {known}"
        raise StatusError(406, "NotAcceptable", text, {})
