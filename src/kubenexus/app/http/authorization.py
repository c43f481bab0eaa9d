"""Authorizes HTTP requests through the API server, as other Kubernetes components do.

A bearer token is authenticated with a TokenReview. A client certificate was verified against the cluster's CA during
the TLS handshake. A request with neither is `system:anonymous`. A SubjectAccessReview then decides whether the user may
`get` the path.

The live API also reviews what objects the user may read.

Answers are cached for ten seconds. To limit the load of unknown clients on the API server, 4 reviews run at a time, 32
requests may wait, and further ones get 429. A request whose answers are cached does not wait. Tokens and users that
were refused are cached apart, so that no number of them displaces a user who may read.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from kubenexus.base.clock import Clock
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.kinds import ACCESS_REVIEWS, TOKEN_REVIEWS, ApiResource
from kubenexus.client.verbs import create

ALWAYS_ALLOWED: Final = ("/healthz", "/readyz", "/livez")
LASTS: Final = 10.0  # seconds for which an answer is cached
REMEMBERED: Final = 1024
AT_A_TIME: Final = 4
WAITING: Final = 32

Value = TypeVar("Value")


class RequestUser(msgspec.Struct, frozen=True):
    """A user, as a TokenReview describes it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}

    @property
    def key(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")


ANONYMOUS: Final = RequestUser("system:anonymous", groups=("system:unauthenticated",))


class AuthFailure(NamedTuple):
    """Why a request is refused. `body` is the `Status` object that Kubernetes clients expect."""

    code: int
    reason: str
    message: str

    @property
    def body(self) -> bytes:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        failure = {"message": self.message, "reason": self.reason, "details": {}, "code": int(self.code)}
        return msgspec.json.encode(status | failure)


UNAUTHORIZED: Final = AuthFailure(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")
TOO_MANY: Final = AuthFailure(
    HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", "Too many requests, please try again later."
)


class ResourceRight(NamedTuple):
    """A verb on a kind of objects, in a namespace or ("") in all of them."""

    verb: str
    resource: str
    namespace: str = ""


class RequestAuthorizer:
    """Authorizes requests to the HTTP server, which calls `authorize` before each page. `allowed` are paths that need
    no authorization; a path may end in `*`."""

    def __init__(self, api: Api, clock: Clock, allowed: Sequence[str] = ALWAYS_ALLOWED) -> None:
        if wrong := [path for path in allowed if "*" in path[:-1]]:
            raise KubeNexusError(f'--authorization-always-allow-paths: only trailing * allowed in "{wrong[0]}"')
        self._api = api
        self._allowed = allowed
        self._users: TtlCache[RequestUser] = TtlCache(clock)
        self._unknown: TtlCache[None] = TtlCache(clock)  # tokens
        self._allowed_rights: TtlCache[None] = TtlCache(clock)
        self._denials: TtlCache[str] = TtlCache(clock)
        self._slots = asyncio.Semaphore(AT_A_TIME)
        self._waiting = 0

    def is_always_allowed(self, path: str) -> bool:
        """Returns whether the path needs no authorization."""
        return any(path.startswith(each[:-1]) if each.endswith("*") else path == each for each in self._allowed)

    async def authorize(
        self, path: str, verb: str, token: str = "", known: RequestUser | None = None
    ) -> AuthFailure | None:
        """Returns why the request is refused, None if it is allowed. `known` is the user of the client certificate; a
        token takes precedence."""
        if self.is_always_allowed(path):
            return None
        wanted = {"nonResourceAttributes": {"path": path, "verb": verb}}
        return await self._in_turn(wanted, f'{verb} path "{path}"', token, known)

    async def authorize_reading(
        self, right: ResourceRight, token: str = "", known: RequestUser | None = None
    ) -> AuthFailure | None:
        """Returns why the user of a request may not read these objects, None if the user may."""
        attributes = {"verb": right.verb, "resource": right.resource, "namespace": right.namespace}
        where = f'in namespace "{right.namespace}"' if right.namespace else "in all namespaces"
        return await self._in_turn(
            {"resourceAttributes": attributes}, f"{right.verb} {right.resource} {where}", token, known
        )

    def username(self, token: str = "", known: RequestUser | None = None) -> str:
        """Returns the name of the user of a request that was authorized before; "" if that was too long ago."""
        if not token:
            return (known or ANONYMOUS).username
        key = _token_key(token)
        return self._users.get(key).username if key in self._users else ""

    async def _in_turn(
        self, wanted: dict[str, Any], text: str, token: str, known: RequestUser | None
    ) -> AuthFailure | None:
        if self._is_cached(wanted, token, known):
            return await self._check(wanted, text, token, known)
        if self._waiting >= WAITING:
            return TOO_MANY
        self._waiting += 1
        try:
            async with self._slots:
                return await self._check(wanted, text, token, known)
        finally:
            self._waiting -= 1

    def _is_cached(self, wanted: dict[str, Any], token: str, known: RequestUser | None) -> bool:
        """Returns whether the request can be answered without the API server."""
        user = known or ANONYMOUS
        if token:
            key = _token_key(token)
            if key not in self._users:
                return key in self._unknown
            user = self._users.get(key)
        right = _right_key(user, wanted)
        return right in self._allowed_rights or right in self._denials

    async def _check(
        self, wanted: dict[str, Any], text: str, token: str, known: RequestUser | None
    ) -> AuthFailure | None:
        try:
            user = await self._authenticate(token) if token else known or ANONYMOUS
            if user is None:
                return UNAUTHORIZED
            problem = await self._denial(user, wanted)
        except (ApiError, Unreachable, Uncertain, msgspec.MsgspecError):
            # Without the cause: the client is not authenticated.
            return AuthFailure(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", "the API server could not be asked")
        if problem is None:
            return None
        message = f'forbidden: User "{user.username}" cannot {text}'
        return AuthFailure(HTTPStatus.FORBIDDEN, "Forbidden", f"{message}: {problem}" if problem else message)

    async def _authenticate(self, token: str) -> RequestUser | None:
        key = _token_key(token)
        if key in self._users:
            return self._users.get(key)
        if key in self._unknown:
            return None
        status = await self._review(TOKEN_REVIEWS, {"token": token})
        if status.get("authenticated") is not True:
            self._unknown.put(key, None)
            return None
        user = msgspec.convert(status.get("user") or {}, RequestUser)
        self._users.put(key, user)
        return user

    async def _denial(self, user: RequestUser, wanted: dict[str, Any]) -> str | None:
        """Returns None if the user may do this, otherwise the reason, which may be ""."""
        key = _right_key(user, wanted)
        if key in self._allowed_rights:
            return None
        if key in self._denials:
            return self._denials.get(key)
        subject = {"user": user.username, "groups": user.groups, "uid": user.uid, "extra": user.extra}
        status = await self._review(ACCESS_REVIEWS, subject | wanted)
        if status.get("allowed") is True and status.get("denied") is not True:
            self._allowed_rights.put(key, None)
            return None
        reason = str(status.get("reason") or "")
        self._denials.put(key, reason)
        return reason

    async def _review(self, kind: ApiResource, spec: dict[str, Any]) -> dict[str, Any]:
        call = create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec})
        answer = msgspec.json.decode(await self._api.send(call, timeout=5.0), type=dict[str, Any])
        status = answer.get("status")
        return status if isinstance(status, dict) else {}


def _token_key(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def _right_key(user: RequestUser, wanted: dict[str, Any]) -> bytes:
    return b"\0".join((user.key, msgspec.json.encode(wanted, order="deterministic")))


class TtlCache(Generic[Value]):
    """A cache whose entries are valid for `LASTS` seconds, with at most `REMEMBERED` entries."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, Value]] = OrderedDict()

    def __contains__(self, key: bytes) -> bool:
        found = self._kept.get(key)
        return found is not None and self._clock.now() < found[0]

    def get(self, key: bytes) -> Value:
        return self._kept[key][1]

    def put(self, key: bytes, value: Value) -> None:
        self._kept[key] = (self._clock.now() + LASTS, value)
        self._kept.move_to_end(key)
        if len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)


def user_of_certificate(certificate: dict[str, Any] | None) -> RequestUser | None:
    """Returns the user of a client certificate: the common name, with the organisations as groups."""
    parts = [pair for group in (certificate or {}).get("subject", ()) for pair in group]
    names = [value for kind, value in parts if kind == "commonName"]
    groups = tuple(value for kind, value in parts if kind == "organizationName")
    return RequestUser(names[0], groups=(*groups, "system:authenticated")) if names and names[0] else None
