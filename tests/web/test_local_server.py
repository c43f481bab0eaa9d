"""`kubenexus web`: what it answers, and what it refuses: other users, other sites, other paths, too much, too slow."""

import asyncio
import io
import json
import re
from pathlib import Path

import pytest

from kubenexus.app.http.api import routes
from kubenexus.app.http.api.paths import PATHS
from kubenexus.web.assets import load_assets
from tests.web.clusters import HOSTILE, cluster
from tests.web.local_fixture import Browser, served

SMALL = cluster(6)
QUESTIONS = [path for path in PATHS if not path.endswith(("whatif", "explain"))]


def test_all_that_the_page_asks_is_answered() -> None:
    async def story(browser: Browser) -> None:
        for path in QUESTIONS:
            reply = await browser.get(path)
            assert reply.status == 200, (path, reply.body)
        found = (await browser.get("/api/v1/map")).json()
        assert (len(found["names"]), found["levels"]) == (6, ["zone", "rack"])
        why = (await browser.get("/api/v1/explain?namespace=research&name=hopeless")).json()
        assert (why["placed"], why["message"][:4]) == (False, "0/6 ")
        jobs = (await browser.get("/api/v1/jobs")).json()["items"]
        assert {each["name"] for each in jobs} == {
            "research/hopeless",
            "speech/single-1",
            "search/single-2",
            "vision/wait-0",
        }
        told = (await browser.get("/web/settings.json")).json()
        assert (told["source"], told["asksToken"]) == ("file", False)

    served(SMALL, story)


def test_a_manifest_is_decided_about_and_nothing_changes() -> None:
    spec = "{containers: [{name: c}], schedulerName: kubenexus-scheduler}"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: next}}\nspec: {spec}"
    body = json.dumps({"manifest": pod}).encode()

    async def story(browser: Browser) -> None:
        own = {"Authorization": f"Bearer {browser.token}"}
        for _ in range(2):
            reply = await browser.send("POST", "/api/v1/whatif?namespace=ml", own, body)
            assert reply.status == 200, reply.body
            assert list(reply.json()["jobs"][0]["nodes"]) == ["ml/next"]
        pods = (await browser.get("/api/v1/jobs?namespace=ml")).json()["items"]
        assert pods == []

    served(SMALL, story)


# --- who is refused ------------------------------------------------------------------------------------------------


def test_without_the_token_nothing_is_said() -> None:
    async def story(browser: Browser) -> None:
        for path in (*PATHS, "/web/settings.json"):
            method = "POST" if path.endswith("whatif") else "GET"
            for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Basic {browser.token}"}):
                reply = await browser.send(method, path, headers)
                assert reply.status == 401, path
                assert b"gpu-" not in reply.body

    served(SMALL, story)


OTHERS = {
    "a name that leads to this machine (DNS rebinding)": ({"Host": "evil.example"}, 421),
    "another port": ({"Host": "127.0.0.1"}, 421),
    "a name that begins like ours": ({"Host": "localhost.evil.example"}, 421),
    "a script of another site": ({"Origin": "https://evil.example"}, 403),
    "a page without an origin": ({"Origin": "null"}, 403),
    "an image or a form of another site": ({"Sec-Fetch-Site": "cross-site"}, 403),
    "a page on another port of this machine": ({"Sec-Fetch-Site": "same-site"}, 403),
}


def test_other_sites_are_refused_even_with_the_token() -> None:
    async def story(browser: Browser) -> None:
        for who, (headers, status) in OTHERS.items():
            for path in ("/api/v1/map", "/web/", "/web/settings.json"):
                assert (await browser.get(path, **headers)).status == status, who

    served(SMALL, story)


OTHER_PATHS = (
    "/web/../../../../etc/passwd",
    "/web/..%2f..%2fassets.py",
    "/web/%2e%2e/assets.py",
    "/web/....//assets.py",
    "/web/static/index.html",
    "/web/index.html%00.js",
    "/api/v1/../../metrics",
    "/api/v1/nodes/gpu-0001",
    "/reports/x/0",
    "/metrics",
)


def test_no_other_path_is_answered() -> None:
    async def story(browser: Browser) -> None:
        for path in OTHER_PATHS:
            reply = await browser.get(path)
            assert reply.status == 404, path
            assert b"root:" not in reply.body

    served(SMALL, story)


def test_the_page_only_reads() -> None:
    async def story(browser: Browser) -> None:
        own = {"Authorization": f"Bearer {browser.token}"}
        for method in ("PUT", "POST", "DELETE", "PATCH", "OPTIONS"):
            assert (await browser.send(method, "/api/v1/map", own)).status == 405

    served(SMALL, story)


def test_a_manifest_of_ten_megabytes_and_one_that_does_not_come_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "BODY_SECONDS", 0.05)

    async def story(browser: Browser) -> None:
        own = {"Authorization": f"Bearer {browser.token}"}

        async def slow():
            yield b"{"
            await asyncio.Event().wait()

        assert (await browser.send("POST", "/api/v1/whatif?namespace=ml", own, slow())).status == 408
        monkeypatch.setattr(routes, "BODY_SECONDS", 10.0)
        assert (
            await browser.send("POST", "/api/v1/whatif?namespace=ml", own, io.BytesIO(b"x" * 10_000_000))
        ).status == 413

    served(SMALL, story)


# --- what the page may do --------------------------------------------------------------------------------------------


def test_the_files_have_a_strict_policy_and_no_script_in_them() -> None:
    async def story(browser: Browser) -> None:
        for name in ("", *load_assets()):
            reply = await browser.send("GET", f"/web/{name}", {})
            assert reply.status == 200
            policy = reply.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "require-trusted-types-for 'script'" in policy
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            tag = reply.headers["ETag"]
            assert (await browser.send("GET", f"/web/{name}", {"If-None-Match": tag})).status == 304
        assert (await browser.send("GET", "/", {})).headers["Location"] == "/web/"

    served(SMALL, story)


@pytest.mark.parametrize("name", sorted(load_assets()))
def test_no_file_turns_text_into_markup_or_names_another_host(name: str) -> None:
    text = load_assets()[name].body.decode()
    markup = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc")
    assert [each for each in markup if each in text] == []
    hosts = re.findall(r"https?://([\w.-]+)", text)
    assert set(hosts) <= {"www.w3.org"}, "the namespace of SVG alone"
    assert " style=" not in text
    if name.endswith(".html"):
        assert "<script>" not in text


def test_hostile_names_and_labels_come_back_as_json_text() -> None:
    async def story(browser: Browser) -> None:
        reply = await browser.get("/api/v1/map")
        assert reply.headers["Content-Type"] == "application/json"
        assert f"eu-a{HOSTILE}" in reply.json()["domains"][0]
        for path in QUESTIONS:
            assert (await browser.get(path)).headers["X-Content-Type-Options"] == "nosniff"

    served(cluster(6, HOSTILE), story)


def test_a_report_is_served_in_a_sandbox_below_a_secret_path(tmp_path: Path) -> None:
    report = tmp_path / "comparison.html"
    report.write_text("<h1>best-fit against fgd</h1><script>alert(1)</script>", encoding="utf-8")

    async def story(browser: Browser) -> None:
        (told,) = (await browser.get("/web/settings.json")).json()["reports"]
        assert told["title"] == "comparison.html"
        reply = await browser.send("GET", told["address"], {})
        assert (reply.status, b"best-fit" in reply.body) == (200, True)
        assert reply.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
        assert (await browser.send("GET", told["address"] + "1", {})).status == 404
        assert len(told["address"]) > 50

    served(SMALL, story, (report,))
