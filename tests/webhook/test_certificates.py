"""The webhook's own certificate: made, shared, renewed before it expires, and trusted before it is served."""

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kubenexus.app.http.serving_certificates import make_self_signed
from kubenexus.base.clock import VirtualClock, WallClock
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import Unreachable
from kubenexus.webhook.certificates import (
    CertificateTerms,
    ManagedCertificate,
    certificates_in,
    expires_at,
    read_pair,
)
from kubenexus.webhook.process import GivenCertificate
from tests.certificates import CertificateFiles
from tests.webhook.fake_api import CONFIGURATIONS, SECRET, FakeApi

DAY = 86_400.0
HOST = "hook.home.svc"
TERMS = CertificateTerms("home", "papers", (HOST, f"{HOST}.cluster.local"), "hook")


async def served(certificate: ManagedCertificate, trusted: str, host: str = HOST) -> str:
    """What a client that trusts these certificates is shown, as PEM. Raises ssl.SSLError if it does not trust it."""

    async def bye(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(bye, "127.0.0.1", 0, ssl=certificate.context)
    port = server.sockets[0].getsockname()[1]
    context = ssl.create_default_context(cadata=trusted)
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
        der: Any = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return ssl.DER_cert_to_PEM_cert(der)
    finally:
        server.close()
        await server.wait_closed()


def only(texts: set[str]) -> str:
    (text,) = texts
    return text


class World:
    def __init__(self, api: FakeApi | None = None) -> None:
        self.api, self.made = api or FakeApi(), 0
        self.clock = VirtualClock(WallClock().now())
        self.began = self.clock.now()
        self.certificate = ManagedCertificate(self.api, self.clock, TERMS, self.make)

    def make(self, hosts: Sequence[str], days: int) -> bytes:
        self.made += 1
        return make_self_signed(hosts, days + round((self.clock.now() - self.began) / DAY))  # openssl's clock is real


def test_the_first_start_makes_one_that_the_api_server_trusts() -> None:
    async def story() -> None:
        world = World()
        assert world.certificate.check() == "there is no certificate yet"
        await world.certificate.refresh()
        trusted = only(world.api.bundles())
        assert await served(world.certificate, trusted) == world.api.secret("tls.crt")
        assert await served(world.certificate, trusted, f"{HOST}.cluster.local")
        assert await served(world.certificate, trusted, "localhost")
        with pytest.raises(ssl.SSLCertVerificationError):
            await served(world.certificate, trusted, "another.home.svc")
        assert world.api.objects[CONFIGURATIONS[0]]["webhooks"][0]["rules"] == ["kept"]
        assert set(world.api.objects[SECRET]["data"]) == {"tls.crt", "tls.key", "ca.crt"}
        assert world.certificate.check() is None
        before = world.api.writes()
        await world.certificate.refresh()
        assert (world.api.writes(), world.made) == (before, 1), "the second round has nothing to do"

    asyncio.run(story())


def test_two_replicas_that_start_together_serve_the_same() -> None:
    async def story() -> None:
        api = FakeApi()
        first, second = World(api), World(api)
        await asyncio.gather(first.certificate.refresh(), second.certificate.refresh(), return_exceptions=True)
        await asyncio.gather(first.certificate.refresh(), second.certificate.refresh())
        trusted = only(api.bundles())
        assert await served(first.certificate, trusted) == await served(second.certificate, trusted)

    asyncio.run(story())


def test_a_new_one_is_trusted_a_round_before_it_is_served_and_the_old_one_until_it_expires() -> None:
    async def story() -> None:
        world = World()
        await world.certificate.refresh()
        old = world.api.secret("tls.crt")
        world.clock.advance(250 * DAY)
        await world.certificate.refresh()
        new = world.api.secret("tls.crt")
        trusted = only(world.api.bundles())
        assert (world.made, certificates_in(trusted)) == (2, [new, old])
        assert await served(world.certificate, trusted) == old
        await world.certificate.refresh()
        assert await served(world.certificate, trusted) == new
        world.clock.advance_to(expires_at(old) + 1)
        await world.certificate.refresh()
        assert (world.made, certificates_in(only(world.api.bundles()))) == (2, [new])

    asyncio.run(story())


def test_a_secret_that_is_deleted_is_made_again_and_what_is_served_stays_trusted() -> None:
    async def story() -> None:
        world = World()
        await world.certificate.refresh()
        old = world.api.secret("tls.crt")
        del world.api.objects[SECRET]
        await world.certificate.refresh()
        new, trusted = world.api.secret("tls.crt"), only(world.api.bundles())
        assert certificates_in(trusted) == [new, old]
        assert await served(world.certificate, trusted) == old
        await world.certificate.refresh()
        assert await served(world.certificate, trusted) == new

    asyncio.run(story())


def test_one_that_has_expired_is_replaced_at_once() -> None:
    async def story() -> None:
        world = World()
        await world.certificate.refresh()
        world.clock.advance(400 * DAY)
        assert world.certificate.check() == "the certificate has expired"
        await world.certificate.refresh()
        assert await served(world.certificate, only(world.api.bundles())) == world.api.secret("tls.crt")
        assert world.made == 2

    asyncio.run(story())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="an empty secret, as the chart makes it"),
        pytest.param({"tls.crt": "%%%", "tls.key": "", "ca.crt": ""}, id="no base64"),
        pytest.param({"tls.crt": "eA==", "tls.key": "eA==", "ca.crt": "eA=="}, id="no certificate"),
        pytest.param({"tls.crt": "gIA=", "tls.key": "eA==", "ca.crt": "eA=="}, id="no text"),
    ],
)
def test_a_secret_that_cannot_be_used_is_replaced(data: dict[str, str]) -> None:
    async def story() -> None:
        world = World()
        world.api.objects[SECRET] = {"metadata": {"resourceVersion": "7"}, "data": data}
        await world.certificate.refresh()
        assert await served(world.certificate, only(world.api.bundles()))

    assert read_pair(data, 0.0) is None
    asyncio.run(story())


def test_a_bundle_that_another_client_removes_is_put_back() -> None:
    async def story() -> None:
        world = World()
        await world.certificate.refresh()
        trusted = only(world.api.bundles())
        world.api.objects[CONFIGURATIONS[1]]["webhooks"][1]["clientConfig"] = {}
        await world.certificate.refresh()
        assert only(world.api.bundles()) == trusted

    asyncio.run(story())


@pytest.mark.parametrize("configurations", [CONFIGURATIONS[:1], CONFIGURATIONS[1:], ()])
def test_either_configuration_may_be_missing(configurations: tuple[str, ...]) -> None:
    world = World(FakeApi(configurations))
    asyncio.run(world.certificate.refresh())
    assert len([each for each in world.api.writes() if each.startswith("PATCH")]) == len(configurations)


def test_an_api_server_that_is_away_leaves_the_certificate_as_it_is() -> None:
    async def story() -> None:
        world = World()
        await world.certificate.refresh()
        world.api.trouble = Unreachable("away")
        with pytest.raises(Unreachable):
            await world.certificate.refresh()
        assert world.certificate.check() is None
        assert await served(world.certificate, world.api.secret("ca.crt"))

    asyncio.run(story())


def test_a_secret_that_others_change_all_the_time_is_an_error() -> None:
    class Busy(FakeApi):
        def compare(self, path: str, body: Any) -> None:
            body["metadata"]["resourceVersion"] = "0"
            super().compare(path, body)

    world = World(Busy())
    world.api.objects[SECRET] = {"metadata": {"resourceVersion": "7"}, "data": {}}
    with pytest.raises(KubeNexusError, match="home/papers is changed by others"):
        asyncio.run(world.certificate.refresh())


def test_a_given_certificate_is_not_ready_once_it_has_expired(tmp_path: Path) -> None:
    papers = CertificateFiles(tmp_path)
    file = papers.self_signed("own")
    clock = VirtualClock(WallClock().now())
    given = GivenCertificate(file, papers.key(file), clock)
    assert given.check() is None
    clock.advance(3650 * DAY)
    assert given.check() == "the certificate has expired"
    file.unlink()
    assert given.check() == "the certificate cannot be read: No such file or directory"
