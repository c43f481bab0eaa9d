"""What the sender of a request may read, by its own rights at the API server."""

from typing import Final, NamedTuple

from kubenexus.app.http.api.request_problem import RequestProblem
from kubenexus.app.http.authorization import AuthFailure, RequestAuthorizer, RequestUser, ResourceRight

LIST_NODES = ResourceRight("list", "nodes")
LIST_ALL_PODS = ResourceRight("list", "pods")
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class Reader(NamedTuple):
    """The sender of one request. Without an authorizer, in tests, everything may be read."""

    authorizer: RequestAuthorizer | None
    token: str = ""
    known: RequestUser | None = None

    @property
    def user(self) -> str:
        """The name of the user, once a right was required."""
        return "" if self.authorizer is None else self.authorizer.username(self.token, self.known)

    @property
    def share(self) -> str:
        """The name under which the user's requests are counted. Service accounts cost nothing, so all of a namespace
        count as one user."""
        user = self.user
        return user.rpartition(":")[0] if user.startswith(_SERVICE_ACCOUNT) else user

    async def require(self, right: ResourceRight) -> None:
        """Raises RequestProblem unless the user has the right."""
        refusal = await self._refusal(right)
        if refusal is not None:
            raise RequestProblem(refusal.code, refusal.reason, refusal.message)

    async def may(self, right: ResourceRight) -> bool:
        """Returns whether the user has the right. Raises RequestProblem if that cannot be found out now."""
        refusal = await self._refusal(right)
        if refusal is not None and refusal.reason != "Forbidden":
            raise RequestProblem(refusal.code, refusal.reason, refusal.message)
        return refusal is None

    async def scope(self, namespace: str) -> str:
        """Returns the namespace that is read, "" for all. Raises RequestProblem if the user may not list its pods."""
        await self.require(ResourceRight("list", "pods", namespace))
        return namespace

    async def _refusal(self, right: ResourceRight) -> AuthFailure | None:
        if self.authorizer is None:
            return None
        return await self.authorizer.authorize_reading(right, self.token, self.known)
