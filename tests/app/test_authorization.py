"""Who comes in: the API server decides, is not asked more than needed, and strangers learn nothing."""

import asyncio
import json

import pytest

from kubenexus.app.http.api.readers import Reader
from kubenexus.app.http.authorization import (
    AT_A_TIME,
    REMEMBERED,
    WAITING,
    AuthFailure,
    RequestAuthorizer,
    RequestUser,
    user_of_certificate,
)
from kubenexus.base.clock import VirtualClock
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import ApiError, Unreachable
from tests.app.reviews import Reviews


class House:
    def __init__(self, *paths: str) -> None:
        self.clock = VirtualClock(100.0)
        self.reviews = Reviews()
        self.authorizer = RequestAuthorizer(self.reviews, self.clock, *([paths] if paths else []))

    def knock(self, path: str = "/metrics", token: str = "", known: RequestUser | None = None) -> AuthFailure | None:
        return asyncio.run(self.authorizer.authorize(path, "get", token, known))


def test_a_good_token_with_the_right_comes_in() -> None:
    house = House()
    assert house.knock(token="good") is None
    token, access = house.reviews.asked
    assert token == {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "good"}}
    assert access == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "prometheus",
            "uid": "7",
            "groups": ["system:authenticated"],
            "extra": {"k": ["v"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    }


def test_a_wrong_token_is_401_as_kubernetes_says_it() -> None:
    refusal = House().knock(token="wrong")
    assert refusal is not None
    assert json.loads(refusal.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "details": {},
        "code": 401,
    }


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("", 'forbidden: User "system:anonymous" cannot get path "/metrics": no such right'),
        ("poor", 'forbidden: User "poor" cannot get path "/metrics": no such right'),
    ],
)
def test_without_the_right_it_is_403(token: str, message: str) -> None:
    assert House().knock(token=token) == (403, "Forbidden", message)


def test_health_needs_no_asking_but_its_details_do() -> None:
    house = House()
    assert [house.knock(path) for path in ("/healthz", "/readyz", "/livez")] == [None] * 3
    assert house.reviews.asked == []
    assert house.knock("/readyz/informer-sync") is not None


def test_paths_can_be_opened() -> None:
    house = House("/metrics", "/readyz/*")
    assert [
        house.authorizer.is_always_allowed(path) for path in ("/metrics", "/readyz/x", "/metricsx", "/healthz")
    ] == [*(True, True, False, False)]
    with pytest.raises(KubeNexusError, match="only trailing"):
        House("/a*b")


def test_a_client_certificate_names_its_user() -> None:
    house = House()
    house.reviews.may.add(("admin", "get", "/metrics"))
    known = user_of_certificate({"subject": ((("organizationName", "masters"),), (("commonName", "admin"),))})
    assert known == RequestUser("admin", groups=("masters", "system:authenticated"))
    assert house.knock(known=known) is None
    assert house.reviews.kinds == ["SubjectAccessReview"]
    assert user_of_certificate(None) is user_of_certificate({"subject": ()}) is None


def test_answers_hold_for_ten_seconds() -> None:
    house = House()
    for _ in range(5):
        house.knock(token="good")
        house.knock(token="wrong")
    assert len(house.reviews.asked) == 3
    house.clock.advance(10)
    house.knock(token="good")
    assert len(house.reviews.asked) == 5


def test_what_is_remembered_is_bounded() -> None:
    house = House()
    for i in range(REMEMBERED + 50):
        house.knock(token=f"wrong-{i}")
    assert len(house.authorizer._unknown._kept) == REMEMBERED


def test_no_number_of_strangers_displaces_or_delays_a_user_whose_answers_are_known() -> None:
    house = House()
    assert house.knock(token="good") is None
    for i in range(REMEMBERED + 50):
        house.knock(token=f"wrong-{i}")
        house.knock(f"/nothing/{i}")
    asked = len(house.reviews.asked)

    async def crowd() -> AuthFailure | None:
        house.reviews.gate = asyncio.Event()
        strangers = [asyncio.create_task(house.authorizer.authorize("/metrics", "get", f"t{i}")) for i in range(100)]
        await asyncio.sleep(0)
        assert any(not each.done() for each in strangers)
        return await house.authorizer.authorize("/metrics", "get", "good")

    assert asyncio.run(crowd()) is None
    assert len(house.reviews.asked) == asked
    assert house.authorizer.username("good") == "prometheus"
    assert house.authorizer.username() == "system:anonymous"


@pytest.mark.parametrize(
    ("user", "share"),
    [
        pytest.param("system:serviceaccount:ml:one", "system:serviceaccount:ml", id="service accounts of a namespace"),
        pytest.param("system:serviceaccount:ml:two", "system:serviceaccount:ml", id="are one user"),
        pytest.param("system:node:n1", "system:node:n1", id="other users are not"),
        pytest.param("alice", "alice", id="a plain name"),
    ],
)
def test_requests_are_counted_by_user(user: str, share: str) -> None:
    assert Reader(House().authorizer, known=RequestUser(user)).share == share


@pytest.mark.parametrize("trouble", [Unreachable("10.0.0.1 is down"), ApiError(403, "Forbidden", "may not review")])
def test_when_the_api_server_cannot_be_asked_nobody_comes_in(trouble: Exception) -> None:
    house = House()
    house.reviews.trouble = trouble
    assert house.knock(token="good") == (500, "InternalError", "the API server could not be asked")


def test_a_crowd_of_strangers_costs_the_api_server_little() -> None:
    house = House()

    async def crowd() -> list[int]:
        house.reviews.gate = asyncio.Event()
        knocks = [asyncio.create_task(house.authorizer.authorize("/metrics", "get", f"t{i}", None)) for i in range(100)]
        for _ in range(5):
            await asyncio.sleep(0)
        sent_away = [task for task in knocks if task.done()]
        assert len(sent_away) == 100 - WAITING
        house.reviews.gate.set()
        return [refusal.code for refusal in await asyncio.gather(*knocks) if refusal is not None]

    codes = asyncio.run(crowd())
    assert (codes.count(429), codes.count(401)) == (100 - WAITING, WAITING)
    assert AT_A_TIME < WAITING
