"""Health checks in the format of Kubernetes components: named checks under `/livez`, `/readyz` and `/healthz`.

A check is a function without arguments that returns None or the problem. It is called in the event loop for each
request, so it only reads state. Ready means that the caches are filled, not that the process leads: a standby is ready.
"""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import NamedTuple

Check = Callable[[], str | None]
Checks = Mapping[str, Check]
Warnings = Callable[[], Iterable[str]]  # problems that do not fail the check


class HealthResponse(NamedTuple):
    status: int
    text: str


def ping() -> None:
    """The check of a path without other checks: it succeeds as long as the process answers."""


def root_page(
    name: str, checks: Checks, excluded: Iterable[str] = (), *, verbose: bool = False, warnings: Warnings = tuple
) -> HealthResponse:
    """Returns the page of `/readyz` and its like: all checks except those in `excluded`. It names the checks that
    failed without the reason, because any client may read it. A warning has its own line, as in kube-apiserver, and
    fails nothing."""
    unknown, lines, failed = set(excluded), [], False
    for check, look in (checks or {"ping": ping}).items():
        if check in unknown:
            unknown.discard(check)
            lines.append(f"[+]{check} excluded: ok")
        elif run_check(look) is None:
            lines.append(f"[+]{check} ok")
        else:
            failed = True
            lines.append(f"[-]{check} failed: reason withheld")
    if unknown:
        names = ",".join(f'"{each}"' for each in sorted(unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    lines += [f"warn: {text}" for text in warnings()]
    if failed:
        return HealthResponse(HTTPStatus.INTERNAL_SERVER_ERROR, "\n".join([*lines, f"{name} check failed\n"]))
    return HealthResponse(HTTPStatus.OK, "\n".join([*lines, f"{name} check passed\n"]) if verbose else "ok")


def check_page(look: Check) -> HealthResponse:
    """Returns the page of one check, such as `/readyz/informer-sync`, with its problem."""
    wrong = run_check(look)
    if wrong is None:
        return HealthResponse(HTTPStatus.OK, "ok")
    return HealthResponse(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal server error: {wrong}\n")


def run_check(look: Check) -> str | None:
    """Returns the problem that a check reports. A check that raises has failed."""
    try:
        return look()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
