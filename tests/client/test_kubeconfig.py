"""Kubeconfig files: what kubectl makes of them, and one line for each that is wrong."""

import base64
import os
import re
from pathlib import Path

import pytest
import yaml

from kubenexus.base.clock import VirtualClock, WallClock
from kubenexus.client.calls import Call
from kubenexus.client.client_config import ClientConfig, ClientOptions, load_client_config
from kubenexus.client.credentials import ClientConfigError
from kubenexus.client.dial import Proxy, ServerAddress
from kubenexus.client.transport import ApiClient
from tests.client.conftest import Papers
from tests.client.server import answering, http, run, serving

CLOCK = VirtualClock(1_000_000_000.0)


def config(**changes: object) -> dict:
    """A kubeconfig as it is, most of the time."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://h:6443", "insecure-skip-tls-verify": True}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "preferences": {},
    } | changes


def found(folder: Path, document: object, *, wish: ClientOptions | None = None, clock=CLOCK, env=None) -> ClientConfig:
    path = folder / "config"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return load_client_config(wish or ClientOptions(kubeconfig=str(path)), clock, env={} if env is None else env)


def user(**fields: object) -> dict:
    return config(users=[{"name": "u", "user": {key.replace("_", "-"): value for key, value in fields.items()}}])


def cluster(**fields: object) -> dict:
    return config(clusters=[{"name": "c", "cluster": {key.replace("_", "-"): value for key, value in fields.items()}}])


def test_a_kubeconfig_as_it_is(tmp_path: Path) -> None:
    access = found(tmp_path, config())
    assert access.address == ServerAddress("h", 6443)
    assert access.credentials.current() == "Bearer t"
    assert access.namespace == "ns"
    assert access.source == f"kubeconfig {tmp_path}/config (context main)"


WRONG = [
    pytest.param("a: [", "not YAML: .* in line ", id="no YAML"),
    pytest.param("\x00", "not YAML", id="not even a text"),
    pytest.param("[]", "Expected `object`, got `array`", id="a list"),
    pytest.param("", "current-context: not set, and no context was asked for", id="empty"),
    pytest.param(config(contexts={"a": 1}), "contexts: Expected `array`", id="contexts that are no list"),
    pytest.param(
        config(contexts=[{"name": "x"}, {"name": "y"}, {"name": "main", "context": {"cluster": "gone"}}]),
        "contexts[2].context.cluster: no cluster named 'gone'",
        id="a cluster that is not there",
    ),
    pytest.param(
        config(contexts=[{"name": "main"}]), "contexts[0].context.cluster: no cluster is named", id="no cluster"
    ),
    pytest.param(config(users=[]), "contexts[0].context.user: no user named 'u'", id="a user that is not there"),
    pytest.param(config(**{"current-context": "x"}), "current-context: no context named 'x'", id="no such context"),
    pytest.param(config(users=[{"user": {}}]), "users[0].name: missing", id="a user without a name"),
    pytest.param(
        config(users=[{"name": "u"}, {"name": "u"}]), "users[1].name: a second entry named 'u'", id="a name twice"
    ),
    pytest.param(config(users=[{"name": 5}]), "users[0].name: Expected `str`, got `int`", id="a number for a name"),
    pytest.param(cluster(), "clusters[0].cluster.server: no server is named", id="no server"),
    pytest.param(cluster(server="ftp://h"), "clusters[0].cluster.server: 'ftp://h' begins with neither", id="ftp"),
    pytest.param(
        cluster(server="https://h", certificate_authority_data="!!"),
        "clusters[0].cluster.certificate-authority-data: not base64",
        id="an authority that is not base64",
    ),
    pytest.param(
        cluster(server="https://h", certificate_authority_data="aGVsbG8="),
        "clusters[0].cluster.certificate-authority-data: no certificate in PEM form",
        id="an authority that is no certificate",
    ),
    pytest.param(
        cluster(server="https://h", certificate_authority="gone.crt"),
        "gone.crt: No such file or directory",
        id="an authority that is not there",
    ),
    pytest.param(
        cluster(server="https://h", certificate_authority="x", insecure_skip_tls_verify=True),
        "clusters[0].cluster.insecure-skip-tls-verify: a certificate authority is given as well",
        id="trusted and not verified",
    ),
    pytest.param(
        cluster(server="https://h", insecure_skip_tls_verify="yes"),
        "clusters[0].cluster.insecure-skip-tls-verify: Expected `bool`, got `str`",
        id="yes for true",
    ),
    pytest.param(
        cluster(server="https://h", insecure_skip_tls_verify=True, proxy_url="socks5://p"),
        "clusters[0].cluster.proxy-url: a proxy must be http",
        id="a proxy we cannot use",
    ),
    pytest.param(
        user(client_certificate_data="aGVsbG8="),
        "users[0].user.client-key: missing, though there is a client-certificate",
        id="a certificate without its key",
    ),
    pytest.param(
        user(client_key_data="aGVsbG8="),
        "users[0].user.client-certificate: missing, though there is a client-key",
        id="a key without its certificate",
    ),
    pytest.param(
        user(client_certificate_data="aGVsbG8=", client_key_data="aGVsbG8="),
        "users[0].user.client-certificate-data: no certificate and key in PEM form",
        id="neither certificate nor key",
    ),
    pytest.param(
        user(auth_provider={"name": "gcp"}), "users[0].user.auth-provider: no longer supported", id="an auth provider"
    ),
    pytest.param(
        user(username="a", token="b"), "users[0].user.username: there is a token as well", id="a name and a token"
    ),
    pytest.param(user(token="two words"), "users[0].user.token: the token has characters", id="a token with a blank"),
    pytest.param(user(tokenFile="gone"), "users[0].user.tokenFile: ", id="a token file that is not there"),
    pytest.param(user(as_groups=["a"]), "users[0].user.as: missing", id="a group of nobody"),
    pytest.param(user(**{"as": "a\nb"}), "users[0].user.as: has characters", id="a name with a line break"),
    pytest.param(user(as_user_extra={"a": ["b"]}), "users[0].user.as-user-extra: not supported", id="extra"),
    pytest.param(user(exec={"command": "x"}), "users[0].user.exec.apiVersion: must be client.auth", id="no version"),
    pytest.param(
        user(exec={"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}),
        "users[0].user.exec.apiVersion: must be ",
        id="an old version",
    ),
    pytest.param(
        user(exec={"apiVersion": "client.authentication.k8s.io/v1"}),
        "users[0].user.exec.command: missing",
        id="no command",
    ),
    pytest.param(
        user(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Always"}),
        "users[0].user.exec.interactiveMode: the program wants a person",
        id="a plugin for people",
    ),
    pytest.param(
        user(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "env": [{"value": "y"}]}),
        "users[0].user.exec.env[0].name: missing",
        id="a variable without a name",
    ),
]


@pytest.mark.parametrize(("document", "text"), WRONG)
def test_what_is_wrong_is_said_in_one_line_with_file_and_field(tmp_path: Path, document: object, text: str) -> None:
    with pytest.raises(ClientConfigError) as caught:
        found(tmp_path, document)
    message = str(caught.value)
    assert message.startswith(f"kubeconfig {tmp_path}/config: ")
    assert "\n" not in message
    assert re.search(text.replace("[", r"\[").replace("]", r"\]"), message), message


def test_an_expired_certificate_is_said_at_the_start(tmp_path: Path, papers: Papers) -> None:
    old = papers.expired_client
    document = user(client_certificate=str(old), client_key=str(papers.key(old)))
    text = r"config: users\[0\].user.client-certificate: the certificate expired at 20"
    with pytest.raises(ClientConfigError, match=text):
        found(tmp_path, document, clock=WallClock())


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ClientConfigError, match="no-such: no such file"):
        load_client_config(ClientOptions(kubeconfig=str(tmp_path / "no-such")), CLOCK, env={})
    with pytest.raises(ClientConfigError, match=r"kubeconfig .*: Is a directory"):
        load_client_config(ClientOptions(kubeconfig=str(tmp_path)), CLOCK, env={})


def test_several_files_are_merged_the_first_wins(tmp_path: Path) -> None:
    one = config(users=[], clusters=[], **{"current-context": ""})
    other = config(users=[{"name": "u", "user": {"token": "second"}}])
    third = config(users=[{"name": "u", "user": {"token": "third"}}], **{"current-context": "no"})
    paths = [tmp_path / name for name in ("one", "two", "three")]
    for path, document in zip(paths, (one, other, third), strict=True):
        path.write_text(yaml.safe_dump(document))
    env = {"KUBECONFIG": os.pathsep.join(["", str(tmp_path / "gone"), *map(str, paths)])}
    access = load_client_config(ClientOptions(), CLOCK, env=env)
    assert access.credentials.current() == "Bearer second"
    assert access.address.host == "h"


def test_relative_paths_count_from_the_file_that_has_them(tmp_path: Path, papers: Papers) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(papers.authority.read_bytes())
    (folder / "token").write_text("from-file\n")
    document = cluster(server="https://h", certificate_authority="ca.crt") | {
        "users": [{"name": "u", "user": {"tokenFile": "token"}}]
    }
    assert found(folder, document).credentials.current() == "Bearer from-file"


def test_another_context_another_server_and_home(tmp_path: Path) -> None:
    document = config()
    document["contexts"].append({"name": "other", "context": {"cluster": "c"}})
    path = str(tmp_path / "config")
    access = found(tmp_path, document, wish=ClientOptions(kubeconfig=path, context="other", master="https://m:1/p"))
    assert access.address == ServerAddress("m", 1, prefix="/p")
    assert access.credentials.current() == "", "a context without a user is nobody"
    with pytest.raises(ClientConfigError, match="config: no context named 'x'"):
        found(tmp_path, document, wish=ClientOptions(kubeconfig=path, context="x"))
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(yaml.safe_dump(config()))
    assert load_client_config(ClientOptions(), CLOCK, env={"HOME": str(tmp_path)}).address.host == "h"


def test_every_field_is_heard(tmp_path: Path) -> None:
    document = cluster(
        server="https://h", insecure_skip_tls_verify=True, tls_server_name="n", proxy_url="http://p:3128"
    ) | {"users": [{"name": "u", "user": {"username": "me", "password": "pw", "as": "other", "as-groups": ["g"]}}]}
    access = found(tmp_path, document)
    assert access.address == ServerAddress("h", 443, server_name="n", proxy=Proxy("p", 3128))
    assert access.credentials.current() == "Basic " + base64.b64encode(b"me:pw").decode()
    assert access.headers == (("Impersonate-User", "other"), ("Impersonate-Group", "g"))


def test_nulls_are_as_good_as_nothing(tmp_path: Path) -> None:
    document = config(preferences=None, extensions=None)
    document["users"][0]["user"]["exec"] = None
    assert found(tmp_path, document).credentials.current() == "Bearer t"


def test_a_secret_is_never_part_of_a_message(tmp_path: Path) -> None:
    with pytest.raises(ClientConfigError) as caught:
        found(tmp_path, user(token="hush hush"))
    assert "hush" not in str(caught.value)


def test_certificates_as_data_all_the_way(tmp_path: Path, papers: Papers) -> None:
    def data(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    async def main() -> None:
        async with serving(answering(http(b"hello")), tls=papers.serving(clients=True)) as served:
            document = cluster(
                server=f"https://127.0.0.1:{served.port}", certificate_authority_data=data(papers.authority)
            )
            shown = {
                "client-certificate-data": data(papers.client),
                "client-key-data": data(papers.key(papers.client)),
                "as": "someone",
            }
            document["users"] = [{"name": "u", "user": shown}]
            client = ApiClient(found(tmp_path, document, clock=WallClock()), WallClock())
            assert await client.send(Call("GET", "/x")) == b"hello"
            assert served.requests[0].fields["impersonate-user"] == "someone"
            assert "authorization" not in served.requests[0].fields
            await client.close()

    run(main())


def test_nothing_at_all_is_said_helpfully() -> None:
    with pytest.raises(ClientConfigError, match="no cluster: give --kubeconfig"):
        load_client_config(ClientOptions(), CLOCK, env={})
    assert load_client_config(ClientOptions(master="http://h:8080"), CLOCK, env={}).address == ServerAddress(
        "h", 8080, False
    )


def test_in_a_pod(tmp_path: Path, papers: Papers) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    (tmp_path / "ca.crt").write_bytes(papers.authority.read_bytes())
    with pytest.raises(ClientConfigError, match=r"in-cluster: .*token: No such file"):
        load_client_config(ClientOptions(), CLOCK, env=env, account=tmp_path)
    (tmp_path / "token").write_text("one")
    (tmp_path / "namespace").write_text("kubenexus-system\n")
    clock = VirtualClock(0.0)
    access = load_client_config(ClientOptions(), clock, env=env, account=tmp_path)
    assert access.address == ServerAddress("fd00::1", 443)
    assert (access.namespace, access.source) == ("kubenexus-system", "in-cluster")
    (tmp_path / "token").write_text("two")
    assert access.credentials.current() == "Bearer one"
    clock.advance(60.0)
    assert access.credentials.current() == "Bearer two"
    (tmp_path / "ca.crt").unlink()
    with pytest.raises(ClientConfigError, match=r"in-cluster: .*ca.crt: No such file"):
        load_client_config(ClientOptions(), CLOCK, env=env, account=tmp_path)
