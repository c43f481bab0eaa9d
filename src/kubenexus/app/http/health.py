"""Health as Kubernetes' components tell it: named checks behind `/livez`, `/readyz` and `/healthz`.

A check is a function without arguments that returns None, or what is wrong. It is called in the loop for each request,
so it looks at something and does nothing. Ready means that the caches are filled, not that we lead: a standby is ready.
"""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import NamedTuple

Check = Callable[[], str | None]
Checks = Mapping[str, Check]
Warnings = Callable[[], Iterable[str]]  # what is not well, and no reason to fail


class HealthResponse(NamedTuple):
    status: int
    text: str


def ping() -> None:
    """Well as long as it answers."""


def root_page(
    name: str, checks: Checks, excluded: Iterable[str] = (), *, verbose: bool = False, warnings: Warnings = tuple
) -> HealthResponse:
    """`/readyz`: all checks, those in `excluded` passed over. What failed is named, why is not: anybody may ask. A
    warning has a line of its own, as kube-apiserver's have, and fails nothing."""
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
    """`/readyz/informer-sync`: one check, and what is wrong with it."""
    wrong = run_check(look)
    if wrong is None:
        return HealthResponse(HTTPStatus.OK, "ok")
    return HealthResponse(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal server error: {wrong}\n")


def run_check(look: Check) -> str | None:
    """What a check says. One that cannot even look has failed."""
    try:
        return look()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
