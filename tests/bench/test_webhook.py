"""The bench of the webhook measures what it claims to."""

import asyncio
import random

from bench.webhook import SERVERS, bodies, measure, summary
from kubenexus.app.http.serving_certificates import context_from_pem, make_self_signed
from kubenexus.webhook.admission import decode_review
from kubenexus.webhook.validation import ValidationSettings, validate


def test_its_reviews_are_of_all_kinds() -> None:
    made = bodies(random.Random(1))
    reviews = [next(made) for _ in range(100)]
    assert {path for path, _ in reviews} == {"/validate", "/mutate/gang"}
    verdicts = {validate(decode_review(body), ValidationSettings()).allowed for _, body in reviews}
    assert verdicts == {True, False}
    assert 6_000 < sum(len(body) for _, body in reviews) / len(reviews) < 12_000


def test_every_request_is_answered_and_counted() -> None:
    async def story() -> None:
        context = context_from_pem(make_self_signed(("localhost",), 2))
        ports, stops = zip(*[await start(context) for start in SERVERS.values()], strict=True)
        found = await measure(ports, 2_000.0, 50, 8)
        for stop in stops:
            await stop()
        assert [(each.count, each.failed) for each in found] == [(50, 0)] * len(SERVERS)
        assert all(0 < each.p50 <= each.p90 <= each.p99 <= each.p999 <= each.most for each in found)

    asyncio.run(story())


def test_requests_that_the_load_sent_late_are_told_apart() -> None:
    found = summary([(0.1, 2.0), (0.2, 3.0), (40.0, 45.0)], 0)
    assert (found.p50, found.most) == (3.0, 45.0)
    assert found.on_time == (2, 3.0)
    assert summary([(9.0, 9.0)], 0).on_time == (0, 0.0)
