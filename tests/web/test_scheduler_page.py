"""The page of a scheduler (`--web`), and `kubenexus web --scheduler`, which asks it as the user of a kubeconfig."""

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from kubenexus.base.clock import WallClock
from kubenexus.cli import main
from kubenexus.cli.scheduler_api import SchedulerApi
from kubenexus.client.client_config import ClientOptions, load_client_config
from kubenexus.client.transport import ApiClient
from kubenexus.testing.builders import a_pod
from kubenexus.web.forwarding import ForwardingRoutes
from kubenexus.web.local_server import LocalServer
from kubenexus.web.page_routes import PageRoutes, PageSettings
from tests.app.api_fixture import LOCAL, OURS, ApiFixture
from tests.app.api_fixture import served as scheduler_served
from tests.cli.test_scheduler_commands import kubeconfig
from tests.web.local_fixture import Browser


def test_a_scheduler_serves_the_files_to_anyone_and_the_cluster_to_those_who_may_read_it() -> None:
    async def story(api: ApiFixture) -> None:
        page = await api.get("/web/", token="")
        assert (page.status, b"<title>KubeNexus" in page.body) == (200, True)
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert (await api.get("/web/settings.json", token="")).json()["asksToken"] is True
        assert [(await api.get("/api/v1/map", token)).status for token in ("", "made up", "member")] == [403, 401, 403]
        assert (await api.get("/api/v1/map")).status == 200
        for path in ("/web/../metrics", "/web/%2e%2e/metrics", "/web/..%2fmetrics", "/webx"):
            assert (await api.get(path, token="")).status in (403, 404), path

    scheduler_served(story, PageRoutes)


def test_without_the_flag_there_is_no_page() -> None:
    async def story(api: ApiFixture) -> None:
        assert (await api.get("/web/", token="")).status == 403
        assert (await api.get("/web/")).status == 403

    scheduler_served(story)


@pytest.mark.parametrize("words", [["--no-live-api"], ["--secure-port", "0"]])
def test_the_page_needs_the_live_api(words: list[str]) -> None:
    result = CliRunner().invoke(main, ["run", "--web", *words])
    assert (result.exit_code, "--web: the page needs" in result.output) == (1, True)


def test_questions_are_forwarded_with_the_rights_of_the_kubeconfig(tmp_path: Path) -> None:
    async def story(api: ApiFixture) -> None:
        clock, url = WallClock(), f"http://{LOCAL}:{api.port}"
        found = load_client_config(ClientOptions(kubeconfig=kubeconfig(tmp_path, "member")), clock)
        client = ApiClient(SchedulerApi(url).config(found), clock)
        server = LocalServer(ForwardingRoutes(client), PageSettings("scheduler", url, "ml"))
        assert api.session is not None
        browser = Browser(api.session, await server.start(0))
        try:
            await _asked(browser)
            await _followed(browser, api)
        finally:
            await server.stop()
            await client.close()

    async def _asked(browser: Browser) -> None:
        why = await browser.get("/api/v1/explain?namespace=ml&name=train")
        assert (why.status, why.json()["placed"]) == (200, False)
        assert b"secret-node" not in why.body
        refused = await browser.get("/api/v1/map?namespace=web")
        assert (refused.status, refused.json()["reason"]) == (403, "Forbidden")
        injected = "/api/v1/jobs?namespace=ml%20HTTP/1.1%0d%0aX-Evil:%201"
        assert (await browser.get(injected)).status == 400
        assert (await browser.get("/metrics")).status == 404
        own = {"Authorization": f"Bearer {browser.token}"}
        assert (await browser.send("POST", "/api/v1/whatif?namespace=ml", own, b"{}")).status == 403

    async def _followed(browser: Browser, api: ApiFixture) -> None:
        url = f"{browser.base}/api/v1/decisions?namespace=ml&follow=1"
        assert api.session is not None
        async with api.session.get(url, headers={"Authorization": f"Bearer {browser.token}"}) as stream:
            assert stream.headers["Content-Type"] == "text/event-stream"
            api.fixture.pods(a_pod("late", namespace="ml", cpu=7, scheduler_name=OURS))
            await api.fixture.work()
            line = await stream.content.readline()
        assert json.loads(line.removeprefix(b"data: "))["job"] == "ml/late"

    scheduler_served(story)


def test_a_scheduler_that_does_not_answer_is_an_error_of_the_page(tmp_path: Path) -> None:
    async def life() -> None:
        clock = WallClock()
        found = load_client_config(ClientOptions(kubeconfig=kubeconfig(tmp_path, "member")), clock)
        client = ApiClient(SchedulerApi("http://127.0.0.1:1").config(found), clock)
        server = LocalServer(ForwardingRoutes(client), PageSettings())
        async with aiohttp.ClientSession() as session:
            browser = Browser(session, await server.start(0))
            reply = await browser.get("/api/v1/jobs")
        await server.stop()
        await client.close()
        assert (reply.status, "does not answer" in reply.json()["message"]) == (502, True)

    asyncio.run(life())
