"""The bench of the webhook measures what it claims to."""

import asyncio
import random

from bench.webhook import NoApi, bodies, measure, summary
from kubenexus.app.http.serving_certificates import context_from_pem, make_self_signed
from kubenexus.base.clock import WallClock
from kubenexus.webhook.admission import decode_review
from kubenexus.webhook.namespaces import NamespaceLabels
from kubenexus.webhook.server import WebhookServer, WebhookSettings
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
        server = WebhookServer(WebhookSettings(), NamespaceLabels(NoApi(), WallClock()), {})
        port = await server.start("127.0.0.1", 0, context_from_pem(make_self_signed(("localhost",), 2)))
        found = await measure(port, 2_000.0, 50, 8)
        await server.stop()
        assert (found.count, found.failed) == (50, 0)
        assert 0 < found.p50 <= found.p99 <= found.most

    asyncio.run(story())


def test_requests_that_the_load_sent_late_are_told_apart() -> None:
    found = summary([(0.1, 2.0), (0.2, 3.0), (40.0, 45.0)], 0)
    assert (found.p50, found.most) == (3.0, 45.0)
    assert found.on_time == (2, 3.0)
    assert summary([(9.0, 9.0)], 0).on_time == (0, 0.0)
