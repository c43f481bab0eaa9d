"""The process of the webhook: over TLS, with given files that change, with its own certificate, and to its end."""

import asyncio
import json
import shutil
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from kubenexus.base.clock import WallClock
from kubenexus.base.errors import KubeNexusError
from kubenexus.cli import main
from kubenexus.client.calls import Unreachable
from kubenexus.webhook.certificates import CertificateTerms
from kubenexus.webhook.process import RETRY, ROUND, ServingOptions, WebhookProcess
from kubenexus.webhook.server import WebhookSettings
from tests.async_helpers import FakeSleep, wait_until, yield_to_loop
from tests.certificates import CertificateFiles
from tests.webhook.fake_api import FakeApi
from tests.webhook.requests import pod
from tests.webhook.test_server import LOCAL, review

OWN = ServingOptions(LOCAL, 0, terms=CertificateTerms("home", "papers", ("hook.home.svc",), "hook"))


class Running:
    def __init__(self, options: ServingOptions, api: FakeApi | None = None) -> None:
        self.api, self.sleep = api or FakeApi(), FakeSleep()
        self.options = options

    def during(self, doing: Callable[["Running"], Awaitable[None]]) -> None:
        async def life() -> None:
            self.process = WebhookProcess(
                self.api, WallClock(), WebhookSettings(), self.options, sleep=self.sleep.sleep
            )
            self.task = asyncio.ensure_future(self.process.run())
            try:
                await doing(self)
            finally:
                self.process.stop()
                await self.task

        asyncio.run(life())

    async def ready(self) -> None:
        await wait_until(lambda: self.process.port)

    async def post(self, trusted: str, path: str = "/validate") -> Any:
        """Reviews a pod over a new connection, as a client that trusts these certificates."""
        context = ssl.create_default_context(cadata=trusted)
        connector = aiohttp.TCPConnector(ssl=context, force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            url = f"https://{LOCAL}:{self.process.port}{path}"
            async with session.post(url, data=review("Pod", pod()), server_hostname="localhost") as answer:
                return json.loads(await answer.text())["response"]


def test_it_serves_with_a_certificate_of_its_own() -> None:
    async def story(running: Running) -> None:
        await running.ready()
        assert await running.post(running.api.secret("ca.crt")) == {"uid": "u-1", "allowed": True}

    Running(OWN).during(story)


def test_it_waits_for_an_api_server_that_is_away_and_goes_on_when_it_is_away_later() -> None:
    async def story(running: Running) -> None:
        await wait_until(lambda: running.sleep.sleeping)
        assert not running.process.port
        running.api.trouble = None
        await running.sleep.advance(RETRY)
        await running.ready()
        running.api.trouble = Unreachable("away again")
        await wait_until(lambda: running.sleep.sleeping)
        before = len(running.api.calls)
        await running.sleep.advance(ROUND)
        await wait_until(lambda: len(running.api.calls) > before and running.sleep.sleeping)
        assert await running.post(running.api.secret("ca.crt")) == {"uid": "u-1", "allowed": True}

    api = FakeApi()
    api.trouble = Unreachable("away")
    Running(OWN, api).during(story)


def test_a_review_in_progress_is_answered_when_it_stops() -> None:
    async def story(running: Running) -> None:
        await running.ready()
        running.api.gate = asyncio.Event()
        before = len(running.api.calls)
        asked = asyncio.ensure_future(running.post(running.api.secret("ca.crt"), "/mutate/scheduler-name"))
        await wait_until(lambda: len(running.api.calls) > before)
        running.process.stop()
        await yield_to_loop()
        with pytest.raises(aiohttp.ClientConnectorError):
            await running.post(running.api.secret("ca.crt"))
        running.api.gate.set()
        answer = await asked
        assert (answer["uid"], answer["allowed"]) == ("u-1", True)

    Running(OWN).during(story)


def localhost(papers: CertificateFiles, name: str) -> Path:
    return papers.issue(name, "subjectAltName=DNS:localhost", by="ca")


def test_files_that_change_are_served_without_a_restart_and_under_load(tmp_path: Path) -> None:
    papers = CertificateFiles(tmp_path)
    authority = papers.self_signed("ca").read_text()
    old, new = localhost(papers, "old"), localhost(papers, "new")
    files = tmp_path / "tls.crt", tmp_path / "tls.key"

    def put(paper: Path) -> None:
        shutil.copy(paper, files[0])
        shutil.copy(papers.key(paper), files[1])

    async def story(running: Running) -> None:
        await running.ready()
        load = [asyncio.ensure_future(running.post(authority)) for _ in range(10)]
        put(new)
        load += [asyncio.ensure_future(running.post(authority)) for _ in range(10)]
        assert all(answer["allowed"] for answer in await asyncio.gather(*load))

    put(old)
    Running(ServingOptions(LOCAL, 0, str(files[0]), str(files[1]))).during(story)


def test_a_client_does_not_trust_an_expired_certificate(tmp_path: Path) -> None:
    papers = CertificateFiles(tmp_path)
    authority = papers.self_signed("ca").read_text()
    expired = papers.issue("expired", "subjectAltName=DNS:localhost", by="ca", days=-1)

    async def story(running: Running) -> None:
        await running.ready()
        with pytest.raises(aiohttp.ClientConnectorCertificateError, match="expired"):
            await running.post(authority)

    Running(ServingOptions(LOCAL, 0, str(expired), str(papers.key(expired)))).during(story)


def test_files_that_are_missing_end_it_with_one_line(tmp_path: Path) -> None:
    async def story(running: Running) -> None:
        await wait_until(running.task.done)

    with pytest.raises((KubeNexusError, ExceptionGroup), match="the certificate cannot be read: No such file"):
        Running(ServingOptions(LOCAL, 0, str(tmp_path / "no"), str(tmp_path / "no"))).during(story)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--gpu-class=platinum=h100"], "Error: --gpu-class must be TIER=CLASS,... with gold, silver, bronze, not"),
        (["--gpu-class=gold"], "Error: --gpu-class must be TIER=CLASS,..."),
        (["--tls-cert-file=x", "--kubeconfig=KUBECONFIG"], "Error: --tls-cert-file and --tls-private-key-file belong"),
        (["--secure-port=70000"], "Error: Invalid value for '--secure-port'"),
    ],
)
def test_a_wrong_flag_is_one_line(options: list[str], says: str, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c"}}
    config.write_text(json.dumps({"clusters": [cluster], "contexts": [context], "current-context": "x"}))
    named = [each.replace("KUBECONFIG", str(config)) for each in options]
    result = CliRunner().invoke(main, ["webhook", *named])
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert result.output.startswith(says)
