"""Who we are, while it changes: tokens in files, exec plugins, and what a 401 leads to."""

import asyncio
import datetime as dt
import json
import sys
from pathlib import Path

import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.client.calls import ApiError, Call, Unreachable
from kubenexus.client.credentials import ClientConfigError, TokenFileCredentials
from kubenexus.client.exec_plugin import ExecConfig, ExecEnv, ExecPlugin
from kubenexus.client.tls import PemSource, TlsContextFactory
from tests.client.conftest import Papers
from tests.client.server import Talk, a_client, both_loops, calling, http, run, serving, status

GET = Call("GET", "/x")
POST = Call("POST", "/x", b"{}")
UNKNOWN = http(status(401, "Unauthorized", "Unauthorized"), "401 Unauthorized")
V1 = "client.authentication.k8s.io/v1"


def wants(*tokens: str):
    """A server that knows these tokens."""

    async def handler(talk: Talk) -> None:
        while request := await talk.request():
            known = request.fields.get("authorization") in {f"Bearer {token}" for token in tokens}
            await talk.say(http(b"welcome") if known else UNKNOWN)

    return handler


def test_a_token_in_a_file_is_read_again_when_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old\n")

    async def main() -> None:
        credentials = TokenFileCredentials(str(path), VirtualClock())
        path.write_text("new\n")
        async with calling(wants("new"), credentials=credentials) as (client, served):
            assert await client.send(POST) == b"welcome"
            assert len(served.requests) == 2
            assert await client.send(POST) == b"welcome"
            assert len(served.requests) == 3

    run(main())


def test_f66_a_token_nobody_knows_any_more_is_told_and_dated(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")

    async def main() -> None:
        clock = VirtualClock(50.0)
        async with calling(wants("new"), credentials=TokenFileCredentials(str(path), clock), clock=clock) as (
            client,
            served,
        ):
            for _ in range(3):
                with pytest.raises(ApiError) as caught:
                    await client.send(POST)
                assert (caught.value.code, caught.value.reason) == (401, "Unauthorized")
                clock.advance(10.0)
            assert client.unauthorized_since == 50.0, "long enough, and the process should not be ready, then end"
            with pytest.raises(ApiError):
                await client.stream("/watch")
            assert len(served.requests) == 4, "a token that has not changed is not tried twice"
            path.write_text("new")
            assert await client.send(POST) == b"welcome"
            assert client.unauthorized_since is None

    run(main())


@pytest.mark.parametrize(
    ("lists_before", "asked"),
    [
        pytest.param(
            False, ["POST", "GET", "POST"], id="asked where no webhook listens; then that is known for a while"
        ),
        pytest.param(True, ["GET", "POST", "POST"], id="known already"),
    ],
)
def test_a_webhook_that_answers_401_does_not_make_us_unknown(
    tmp_path: Path, lists_before: bool, asked: list[str]
) -> None:
    path = tmp_path / "token"
    path.write_text("new")

    async def webhook(talk: Talk) -> None:
        while request := await talk.request():
            await talk.say(UNKNOWN if "/namespaces/evil/" in request.path else http(b"welcome"))

    async def main() -> None:
        clock = VirtualClock(50.0)
        async with calling(webhook, credentials=TokenFileCredentials(str(path), clock), clock=clock) as (
            client,
            served,
        ):
            if lists_before:
                await client.send(Call("GET", "/api/v1/pods"))
            for _ in range(2):
                with pytest.raises(ApiError) as caught:
                    await client.send(Call("POST", "/api/v1/namespaces/evil/pods/a/binding", b"{}"))
                assert caught.value.code == 401
                assert client.unauthorized_since is None
            assert [each.method for each in served.requests] == asked
            assert len(served.talks) == 1, "and costs no connection"

    run(main())


def test_a_token_that_expires_amid_binds_is_found_out_within_a_second(tmp_path: Path) -> None:
    """A 401 shows nothing about the next one: else each would vouch for the one after it."""
    path = tmp_path / "token"
    path.write_text("new")
    valid = {"Bearer new"}

    async def server(talk: Talk) -> None:
        while request := await talk.request():
            await talk.say(http(b"welcome") if request.fields.get("authorization") in valid else UNKNOWN)

    async def main() -> None:
        clock, bind = VirtualClock(50.0), Call("POST", "/api/v1/namespaces/shop/pods/a/binding", b"{}")
        async with calling(server, credentials=TokenFileCredentials(str(path), clock), clock=clock) as (client, _):
            await client.send(bind)
            valid.clear()
            for _ in range(3):
                clock.advance(0.4)
                with pytest.raises(ApiError):
                    await client.send(bind)
            assert client.unauthorized_since == pytest.approx(51.2)

    run(main())


def test_a_token_that_has_expired_is_found_out_by_a_bind_too(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")

    async def main() -> None:
        clock, bind = VirtualClock(50.0), Call("POST", "/api/v1/namespaces/shop/pods/a/binding", b"{}")
        async with calling(wants("new"), credentials=TokenFileCredentials(str(path), clock), clock=clock) as (
            client,
            _,
        ):
            with pytest.raises(ApiError):
                await client.send(bind)
            assert client.unauthorized_since == 50.0
            path.write_text("new")
            assert await client.send(bind) == b"welcome"
            assert client.unauthorized_since is None

    run(main())


def test_a_token_file_that_vanishes_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", VirtualClock()
    path.write_text("one")
    credentials = TokenFileCredentials(str(path), clock)
    path.unlink()
    clock.advance(61.0)
    assert credentials.current() == "Bearer one"
    assert "No such file" in credentials.problem
    path.write_bytes(b"\xff\xfe")
    clock.advance(61.0)
    assert credentials.current() == "Bearer one"
    path.write_text(" \n")
    clock.advance(61.0)
    assert credentials.current() == "Bearer one"
    path.write_text("two")
    clock.advance(61.0)
    assert (credentials.current(), credentials.problem) == ("Bearer two", "")


class Plugin:
    """A program that says what stands in a file, and counts how often it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "plugin.py"
        self.program.write_text(
            "import os, sys\n"
            f"open({str(folder / 'runs')!r}, 'a').write(os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
            f"sys.stdout.write(open({str(folder / 'answer')!r}).read())\n"
        )

    def answers(self, text: str = "", version: str = V1, **fields: str) -> None:
        answer = {"apiVersion": version, "kind": "ExecCredential", "status": fields}
        (self.folder / "answer").write_text(text or json.dumps(answer))

    @property
    def runs(self) -> list[dict]:
        runs = self.folder / "runs"
        return [json.loads(line) for line in runs.read_text().splitlines()] if runs.exists() else []

    def credentials(self, clock: VirtualClock, *, version: str = V1, cluster=None, **fields) -> ExecPlugin:
        settings = {"command": sys.executable, "args": ["-I", str(self.program)], "api_version": version} | fields
        return ExecPlugin(ExecConfig(**settings), clock, {"PATH": "/usr/bin:/bin"}, at="exec", cluster=cluster)


def stamp(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@both_loops
@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
def test_a_plugin_is_asked_once_until_its_word_expires(run, tmp_path: Path, version: str) -> None:
    async def main() -> None:
        plugin, clock = Plugin(tmp_path), VirtualClock(1000.0)
        plugin.answers(version=version, token="one", expirationTimestamp=stamp(1100.0))
        credentials = plugin.credentials(clock, version=version, cluster={"server": "https://h"})
        async with calling(wants("one", "two"), credentials=credentials) as (client, _):
            await asyncio.gather(*(client.send(GET) for _ in range(5)))
            spec = {"interactive": False, "cluster": {"server": "https://h"}}
            assert plugin.runs == [{"apiVersion": version, "kind": "ExecCredential", "spec": spec}]
            plugin.answers(version=version, token="two", expirationTimestamp=stamp(1200.0))
            await client.send(GET)
            clock.advance(100.0)
            await client.send(GET)
            assert len(plugin.runs) == 2
            assert credentials.current() == "Bearer two"

    run(main())


def test_a_refused_plugin_is_asked_again_but_not_for_each_call(tmp_path: Path) -> None:
    async def main() -> None:
        plugin, clock = Plugin(tmp_path), VirtualClock(1000.0)
        plugin.answers(token="old")
        credentials = plugin.credentials(clock)
        await credentials.fetch()
        async with calling(wants("new"), credentials=credentials) as (client, _):
            for _ in range(3):
                with pytest.raises(ApiError):
                    await client.send(GET)
            assert len(plugin.runs) == 1
            clock.advance(10.0)
            plugin.answers(token="new")
            assert await client.send(GET) == b"welcome"
            assert len(plugin.runs) == 2

    run(main())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param("hush", "its answer is not an ExecCredential", id="no JSON"),
        pytest.param('{"kind":"Hush"}', "not ExecCredential of client.auth", id="another kind"),
        pytest.param(
            json.dumps({"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential"}),
            "not ExecCredential of client.authentication.k8s.io/v1",
            id="another version",
        ),
        pytest.param(
            json.dumps({"apiVersion": V1, "kind": "ExecCredential"}), "neither a token nor a cert", id="empty"
        ),
        *[
            pytest.param(
                json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}),
                "neither a token nor a cert",
                id=f"status {status}",
            )
            for status in (None, {"token": None}, {"token": ""})
        ],
        pytest.param(
            json.dumps({"apiVersion": None, "kind": None, "status": {"token": "hush"}}),
            "not ExecCredential of client.auth",
            id="no kind, but nulls",
        ),
        pytest.param(
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": 5}}),
            "its answer is not an ExecCredential",
            id="a token that is a number",
        ),
        pytest.param(
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"clientCertificateData": "hush"}}),
            "only one of certificate and key",
            id="no key",
        ),
        pytest.param(
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "hush\n"}}),
            "the token has characters",
            id="a token that is none",
        ),
        pytest.param(
            json.dumps(
                {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "x", "expirationTimestamp": "2"}}
            ),
            "expires at '2', which is no time",
            id="a strange time",
        ),
    ],
)
def test_a_plugin_that_answers_wrongly(tmp_path: Path, answer: str, text: str) -> None:
    async def main() -> None:
        plugin, clock = Plugin(tmp_path), VirtualClock(1000.0)
        plugin.answers(answer)
        async with calling(wants("new"), credentials=plugin.credentials(clock)) as (client, served):
            for _ in range(2):
                with pytest.raises(Unreachable, match=text) as caught:
                    await client.send(POST)
                assert "hush" not in str(caught.value)
            assert len(plugin.runs) == 1, "nor is it run again at once"
            assert served.requests == []

    run(main())


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"token": "new", "expirationTimestamp": None}, id="a time"),
        pytest.param({"token": "new", "clientCertificateData": None, "clientKeyData": None}, id="a certificate"),
        pytest.param({"token": "new", "more": None}, id="a field that we do not know"),
    ],
)
def test_a_null_in_a_plugins_answer_is_nothing(tmp_path: Path, status: dict) -> None:
    """As client-go reads it; and what has no time to expire at does not expire."""

    async def main() -> None:
        plugin, clock = Plugin(tmp_path), VirtualClock(1000.0)
        answer = {"apiVersion": V1, "kind": "ExecCredential", "spec": None, "status": status}
        plugin.answers(json.dumps(answer))
        credentials = plugin.credentials(clock)
        await credentials.fetch()
        clock.advance(1e9)
        assert credentials.current() == "Bearer new"
        assert credentials.certificate() is None

    run(main())


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        pytest.param(
            {"command": "no-such-program", "args": [], "install_hint": "install it"},
            "exec.command: no-such-program: No such file or directory; install it",
            id="not installed",
        ),
        pytest.param(
            {"args": ["-c", "import sys; sys.exit('please log in')"]}, "exit code 1: please log in", id="it fails"
        ),
        pytest.param({"args": ["-c", "import signal; signal.pause()"]}, "no answer in 0.05 s", id="it hangs"),
    ],
)
@both_loops
def test_a_plugin_that_does_not_answer(run, settings: dict, text: str) -> None:
    async def main() -> None:
        given = {"command": sys.executable, "api_version": V1} | settings
        patience = 0.05 if "no answer" in text else 60.0
        credentials = ExecPlugin(ExecConfig(**given), VirtualClock(), {}, at="exec", patience=patience)
        with pytest.raises(ClientConfigError, match=text):
            await credentials.fetch()

    run(main())


def test_a_plugin_gets_its_variables_and_a_path_from_its_kubeconfig(tmp_path: Path) -> None:
    async def main() -> None:
        program = tmp_path / "login"
        answer = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "$WHO"}}
        program.write_text(f"#!/bin/sh\ncat <<END\n{json.dumps(answer)}\nEND\n")
        program.chmod(0o755)
        config = ExecConfig(command="./login", api_version=V1, env=[ExecEnv("WHO", "me")])
        credentials = ExecPlugin(config, VirtualClock(), {"PATH": "/usr/bin:/bin"}, at="exec", folder=str(tmp_path))
        await credentials.fetch()
        assert credentials.current() == "Bearer me"

    run(main())


def test_a_plugin_may_answer_with_a_certificate(tmp_path: Path, papers: Papers) -> None:
    async def main() -> None:
        plugin = Plugin(tmp_path)
        plugin.answers(
            clientCertificateData=papers.client.read_text(), clientKeyData=papers.key(papers.client).read_text()
        )

        async def handler(talk: Talk) -> None:
            await talk.request()
            await talk.say(http(b"welcome"))

        async with serving(handler, tls=papers.serving(clients=True)) as served:
            trust = TlsContextFactory(PemSource("ca", path=str(papers.authority)))
            client = a_client(served.port, trust=trust, credentials=plugin.credentials(VirtualClock()))
            assert await client.send(GET) == b"welcome"
            await client.close()

    run(main())
