"""Exec plugins (`client.authentication.k8s.io`): programs that return credentials, run again when these expire."""

import asyncio
import contextlib
import datetime as dt
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.api.codec import encode, from_data
from kubenexus.base.clock import Clock
from kubenexus.base.errors import Malformed, truncated
from kubenexus.client.credentials import ClientConfigError, bearer_header

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
_PATIENCE = 60.0  # seconds for the program to answer
_PAUSE = 5.0  # seconds before it is run again after a failure or a refusal


class ExecEnv(msgspec.Struct, frozen=True):
    name: str = ""
    value: str = ""


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """`users[].user.exec`."""

    command: str = ""
    args: list[str] = []
    env: list[ExecEnv] = []
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    expiration_timestamp: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: ExecStatus | None = None


class ExecPlugin:
    """`Credentials` from a program. It runs once for all calls that wait; its answer is kept until it expires."""

    def __init__(
        self,
        config: ExecConfig,
        clock: Clock,
        env: Mapping[str, str],
        *,
        at: str,
        folder: str = "",
        cluster: Mapping[str, Any] | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        _check(config, at)
        self._config, self._clock, self._at, self._patience = config, clock, at, patience
        # A command with a folder in it is relative to the kubeconfig; a bare name is looked up in PATH.
        self._command = os.path.join(folder, config.command) if os.sep in config.command else config.command
        info = {"interactive": False} | ({"cluster": cluster} if cluster is not None else {})
        asked = {"apiVersion": config.api_version, "kind": "ExecCredential", "spec": info}
        added = {each.name: each.value for each in config.env}
        self._env = {**env, **added, "KUBERNETES_EXEC_INFO": encode(asked).decode()}
        self._lock = asyncio.Lock()
        self._held: ExecStatus | None = None
        self._expires = float("inf")
        self._ran_at = float("-inf")
        self._failure = ""

    def current(self) -> str | None:
        if self._held is None or self._clock.now() >= self._expires:
            return None
        return bearer_header(self._held.token, self._at) if self._held.token else ""

    def certificate(self) -> tuple[bytes, bytes] | None:
        held = self._held
        if held is None or not held.client_certificate_data:
            return None
        return held.client_certificate_data.encode(), held.client_key_data.encode()

    async def fetch(self) -> None:
        async with self._lock:
            if self.current() is not None:
                return
            if self._failure and self._lately():
                raise ClientConfigError(self._failure)
            await self._renew()

    async def refused(self, authorization: str) -> bool:
        if self.current() != authorization:
            return True
        if self._lately():
            return False  # a program whose credentials are never accepted must not run for each call
        self._held = None
        await self.fetch()
        return True

    def _lately(self) -> bool:
        return self._clock.now() - self._ran_at < _PAUSE

    async def _renew(self) -> None:
        self._ran_at = self._clock.now()
        try:
            held = self._read(await self._output())
            expires = _moment(held.expiration_timestamp, self._at)
        except ClientConfigError as error:
            self._failure = str(error)
            raise
        self._held, self._expires, self._failure = held, expires, ""

    async def _output(self) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                *self._config.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._env,
            )
        except OSError as error:
            hint = f"; {truncated(self._config.install_hint)}" if self._config.install_hint else ""
            raise ClientConfigError(f"{self._at}.command: {self._command}: {error.strerror or error}{hint}") from None
        try:
            async with asyncio.timeout(self._patience):
                output, complaint = await process.communicate()
        except TimeoutError:
            raise ClientConfigError(f"{self._at}.command: {self._command}: no answer in {self._patience:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            words = truncated(" ".join(complaint.decode("utf-8", "replace").split()))
            raise ClientConfigError(f"{self._at}.command: {self._command}: exit code {process.returncode}: {words}")
        return output

    def _read(self, output: bytes) -> ExecStatus:
        """Reads the program's answer. Messages never show it: it is a secret even when it is wrong."""
        subject = f"{self._at}.command: {self._command}"
        try:
            # Go reads null as absent, and plugins that marshal a pointer without omitempty write it.
            answer = from_data(msgspec.json.decode(output), ExecCredential)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Malformed):
            raise ClientConfigError(f"{subject}: its answer is not an ExecCredential") from None
        if answer.kind != "ExecCredential" or answer.api_version != self._config.api_version:
            wanted = f"ExecCredential of {self._config.api_version}"
            raise ClientConfigError(
                f"{subject}: answered with {truncated(answer.kind)} of {truncated(answer.api_version)}, not {wanted}"
            )
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data):
            raise ClientConfigError(f"{subject}: its answer has neither a token nor a certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise ClientConfigError(f"{subject}: its answer has only one of certificate and key")
        if status.token:
            bearer_header(status.token, subject)
        return status


def _check(config: ExecConfig, at: str) -> None:
    if not config.command:
        raise ClientConfigError(f"{at}.command: missing")
    if config.api_version not in VERSIONS:
        raise ClientConfigError(
            f"{at}.apiVersion: must be {' or '.join(VERSIONS)}, not {truncated(config.api_version)!r}"
        )
    if config.interactive_mode == "Always":
        raise ClientConfigError(f"{at}.interactiveMode: the program wants a person to talk to, and there is none")
    for i, each in enumerate(config.env):
        if not each.name:
            raise ClientConfigError(f"{at}.env[{i}].name: missing")


def _moment(text: str, at: str) -> float:
    if not text:
        return float("inf")
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ClientConfigError(f"{at}: its answer expires at {truncated(text)!r}, which is no time") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
