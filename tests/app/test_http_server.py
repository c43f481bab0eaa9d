"""The server as a probe, a Prometheus and a person with curl meet it: over real sockets."""

import asyncio
import json
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from kubenexus import __version__
from kubenexus.app.http.authorization import RequestAuthorizer
from kubenexus.app.http.health import ping
from kubenexus.app.http.server import HttpServer, ServedContent, parse_host_port
from kubenexus.app.http.serving_certificates import self_signed, server_context
from kubenexus.base.clock import VirtualClock
from kubenexus.base.errors import KubeNexusError
from kubenexus.config.v1 import KubeSchedulerConfiguration, KubeSchedulerProfile
from kubenexus.observe.metrics import Metrics
from tests.app.reviews import Reviews
from tests.certificates import CertificateFiles

LOCAL = "127.0.0.1"
PATHS = ("/configz", "/metrics", "/statusz", "/version")


class Reply(NamedTuple):
    status: int
    text: str
    headers: Any

    def json(self) -> Any:
        return json.loads(self.text)


class House:
    """A server with everything in it."""

    def __init__(self) -> None:
        self.clock = VirtualClock(1_794_792_257.0)
        self.synced = False
        self.reviews = Reviews()
        checks = {"readyz": {"leaderElection": ping, "informer-sync": self.sync}}
        self.content = ServedContent(
            checks=checks,
            metrics=Metrics().text,
            configuration=KubeSchedulerConfiguration(profiles=[KubeSchedulerProfile(scheduler_name="p")]),
            clock=self.clock,
            started=self.clock.now(),
        )
        self.server = HttpServer(self.content, RequestAuthorizer(self.reviews, self.clock))

    def sync(self) -> str | None:
        return None if self.synced else "2 kinds not listed yet"

    def visit(self, doing: Callable[["Visitor"], Awaitable[None]], tls: ssl.SSLContext | None = None) -> None:
        async def opening() -> None:
            port = await self.server.start_secure(LOCAL, 0, tls)
            probes = await self.server.start_health(LOCAL, 0)
            async with aiohttp.ClientSession() as session:
                await doing(Visitor(session, "https" if tls else "http", port, probes))
            await self.server.stop()

        asyncio.run(opening())


class Visitor(NamedTuple):
    session: aiohttp.ClientSession
    scheme: str
    port: int
    probes: int

    async def get(self, path: str, token: str = "", context: Any = False, **headers: str) -> Reply:
        shown = headers | ({"Authorization": f"Bearer {token}"} if token else {})
        return await self._get(f"{self.scheme}://{LOCAL}:{self.port}{path}", context, shown)

    async def probe(self, path: str) -> Reply:
        return await self._get(f"http://{LOCAL}:{self.probes}{path}", False, {})

    async def _get(self, url: str, context: Any, headers: dict[str, str]) -> Reply:
        async with self.session.get(url, ssl=context, headers=headers) as answer:
            return Reply(answer.status, await answer.text(), answer.headers)


def test_probes_need_neither_tls_nor_a_token() -> None:
    house = House()

    async def probing(visitor: Visitor) -> None:
        assert (await visitor.probe("/livez"))[:2] == (200, "ok")
        assert (await visitor.probe("/healthz/ping"))[:2] == (200, "ok")
        sick = await visitor.probe("/readyz")
        assert sick.status == 500
        assert sick.text == "[+]leaderElection ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"
        assert (await visitor.probe("/readyz?exclude=informer-sync"))[:2] == (200, "ok")
        assert "2 kinds not listed" in (await visitor.probe("/readyz/informer-sync")).text
        house.synced = True
        verbose = await visitor.probe("/readyz?verbose")
        assert verbose.text == "[+]leaderElection ok\n[+]informer-sync ok\nreadyz check passed\n"
        assert verbose.headers["X-Content-Type-Options"] == "nosniff"
        assert [(await visitor.probe(path)).status for path in PATHS] == [404] * 4

    house.visit(probing)
    assert house.reviews.asked == []


def test_metrics_are_for_who_may_read_them() -> None:
    house = House()

    async def scraping(visitor: Visitor) -> None:
        assert (await visitor.get("/readyz")).status == 500
        anonymous = await visitor.get("/metrics")
        assert (anonymous.status, anonymous.json()["reason"]) == (403, "Forbidden")
        assert (await visitor.get("/metrics", "wrong")).json()["code"] == 401
        good = await visitor.get("/metrics", "good")
        assert good.status == 200
        assert good.headers["Content-Type"].startswith("text/plain; version=")
        assert "# TYPE scheduler_schedule_attempts_total counter" in good.text
        modern = await visitor.get("/metrics", "good", Accept="application/openmetrics-text")
        assert modern.text.endswith("# EOF\n")
        assert (await visitor.get("/no/such/page", "good")).status == 403

    house.visit(scraping)


def test_the_pages_about_ourselves() -> None:
    house = House()
    house.reviews.may |= {("prometheus", "get", path) for path in (*PATHS, "/nothing")}

    async def reading(visitor: Visitor) -> None:
        house.clock.advance(3 * 3600 + 62)
        configuration = (await visitor.get("/configz", "good")).json()["componentconfig"]
        assert configuration["leaderElection"]["leaseDuration"] == "15s"
        assert configuration["profiles"][0]["schedulerName"] == "p"
        assert (await visitor.get("/version", "good")).json()["gitVersion"] == f"v{__version__}"
        status = (await visitor.get("/statusz", "good")).text
        assert status.startswith("\nkubenexus-scheduler statusz\nWarning: This endpoint is not meant")
        assert "Started: Mon Nov 16 01:24:17 UTC 2026\nUp: 3 hr 01 min 02 sec\nPython version: 3." in status
        assert "Paths: /configz /healthz /livez /metrics /readyz /statusz /version\n" in status
        assert (await visitor.get("/nothing", "good"))[:2] == (404, "404 page not found\n")

    house.visit(reading)


def test_over_https_with_a_certificate_of_our_own() -> None:
    house = House()

    async def scraping(visitor: Visitor) -> None:
        assert (await visitor.get("/metrics", "good")).status == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await visitor.get("/metrics", "good", context=True)
        with pytest.raises(aiohttp.ClientError):
            await visitor._get(f"http://{LOCAL}:{visitor.port}/livez", False, {})

    house.visit(scraping, asyncio.run(self_signed("localhost")))


def test_a_client_certificate_of_the_clusters_authority_is_somebody(tmp_path: Path) -> None:
    certificates = CertificateFiles(tmp_path)
    authority, serving = certificates.self_signed("authority"), certificates.self_signed("serving")
    client = certificates.issue("monitor", "extendedKeyUsage=clientAuth", by="authority")
    house = House()
    house.reviews.may.add(("monitor", "get", "/metrics"))
    mine = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    mine.check_hostname, mine.verify_mode = False, ssl.CERT_NONE
    mine.load_cert_chain(client, certificates.key(client))

    async def scraping(visitor: Visitor) -> None:
        assert (await visitor.get("/metrics")).status == 403
        assert (await visitor.get("/metrics", context=mine)).status == 200

    house.visit(scraping, server_context(serving, certificates.key(serving), authority=authority.read_text()))
    assert house.reviews.kinds == ["SubjectAccessReview"] * 2


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    async def again() -> None:
        with socket.socket() as taken:
            taken.bind((LOCAL, 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(KubeNexusError, match=f"cannot listen on {LOCAL}:{port}: address already in use; end "):
                await House().server.start_health(LOCAL, port)

    asyncio.run(again())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.0.0.0:10251", ("0.0.0.0", 10251)), (":8080", ("0.0.0.0", 8080)), ("[::1]:1", ("::1", 1))],
)
def test_an_address_is_read(text: str, expected: tuple[str, int]) -> None:
    assert parse_host_port(text) == expected


@pytest.mark.parametrize("text", ["", "host", "18002", "host:", "host:x", "host:70000"])
def test_a_wrong_address_is_one_clear_line(text: str) -> None:
    with pytest.raises(KubeNexusError, match="is not host:port"):
        parse_host_port(text)
