"""What the scheduler has to be allowed, and what it says when it is not."""

from typing import Any

import msgspec
import pytest

from kubenexus.app.permissions import (
    OPTIONAL_PERMISSIONS,
    Permission,
    losses,
    missing_permissions,
    required_permissions,
)
from kubenexus.client import kinds
from kubenexus.client.calls import Call
from kubenexus.sim.virtual.loop import run


class Reviews:
    """An API server that allows everything but some deeds."""

    def __init__(self, *denied: Permission) -> None:
        self._denied = {(deed.verb, deed.resource.plural, deed.part) for deed in denied}

    async def send(self, call: Call, *, timeout: float = 0.0) -> bytes:
        asked: dict[str, Any] = msgspec.json.decode(call.body or b"")["spec"]["resourceAttributes"]
        allowed = (asked["verb"], asked["resource"], asked["subresource"]) not in self._denied
        return msgspec.json.encode({"status": {"allowed": allowed}})


@pytest.mark.parametrize("deed", OPTIONAL_PERMISSIONS, ids=str)
def test_each_right_that_is_useful_is_asked_for_and_says_what_is_lost_without_it(deed: Permission) -> None:
    missing = run(
        missing_permissions(Reviews(deed), [*required_permissions((kinds.PODS,), None), *OPTIONAL_PERMISSIONS])
    )
    assert missing == [deed]
    assert losses(missing) == [OPTIONAL_PERMISSIONS[deed]]


def test_the_right_to_evict_is_among_them() -> None:
    assert losses([Permission("create", kinds.PODS, "eviction")]) == [
        "no pods are evicted for others, nor gangs that stay incomplete"
    ]


def test_a_loss_is_named_once() -> None:
    assert len(losses(OPTIONAL_PERMISSIONS)) == len(set(OPTIONAL_PERMISSIONS.values())) < len(OPTIONAL_PERMISSIONS)
