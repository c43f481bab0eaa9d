"""Who places the pods: where kube-scheduler is looked for, and what is told of an act that it cannot play."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubenexus.sim.demo.demo_client import DemoClient
from kubenexus.sim.demo.demo_run import DemoFailed, DemoOptions, DemoRun
from kubenexus.sim.demo.schedulers import KUBE, NONE, ProgramNotFound, find_kube_scheduler
from kubenexus.sim.demo.steps import DemoStep


def program(folder: Path, text: str = "exec sleep 60") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "kube-scheduler"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_named_folder_comes_first_then_the_cache_then_the_path(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}
    with pytest.raises(ProgramNotFound, match="`make controlplane` builds one"):
        find_kube_scheduler(env)
    for folder in ("bin", ".cache/kubenexus/controlplane/0123", "assets"):
        path = program(tmp_path / folder)
        assert find_kube_scheduler(env) == path


def test_the_newest_build_wins(tmp_path: Path) -> None:
    cache = tmp_path / "kubenexus" / "controlplane"
    newest, oldest = program(cache / "a"), program(cache / "b")
    os.utime(oldest, (1, 1))
    assert find_kube_scheduler({"XDG_CACHE_HOME": str(tmp_path)}) == newest


async def _nothing(_: DemoClient) -> str:
    return "as told"


STORY = (DemoStep("Anybody's", _nothing), DemoStep("Ours", _nothing, only="kube-scheduler has no gangs"))


def play(scheduler: str) -> list[str]:
    said: list[str] = []
    asyncio.run(DemoRun(DemoOptions(nodes=4, scheduler=scheduler, story=STORY), said.append).play())
    return said


def test_what_kube_scheduler_cannot_play_is_passed_over_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    said = play(KUBE)
    assert said[0].startswith("A cluster of 12 nodes; scheduler: kube-scheduler, process ")
    assert said[2:4] == ["1. Anybody's: as told", "2. Ours: not told: kube-scheduler has no gangs"]


def test_everybody_else_has_to_play_it() -> None:
    assert play("none")[3] == "2. Ours: as told"


async def _waits(client: DemoClient) -> str:
    await client.until("better times", lambda: "these")
    return ""


def test_a_scheduler_that_cannot_start_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "echo no such flag; exit 3")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    plan = DemoOptions(nodes=4, scheduler=KUBE, story=(DemoStep("Waits", _waits),))
    with pytest.raises(DemoFailed, match="the story broke off: kube-scheduler ended with code 3: no such flag"):
        asyncio.run(DemoRun(plan, lambda _: None).play())


def test_an_act_that_does_not_come_true_says_what_was_expected_and_what_was_seen() -> None:
    plan = DemoOptions(
        nodes=4, scheduler="none", patience=0.1, story=(DemoStep("Fine", _nothing), DemoStep("Waits", _waits))
    )
    with pytest.raises(DemoFailed) as failed:
        asyncio.run(DemoRun(plan, lambda _: None).play())
    assert str(failed.value) == "act 2 (Waits) failed: expected better times, saw these after 0.1 s"


def test_a_page_about_the_cluster_is_served_and_its_address_printed() -> None:
    said, asked = list[str](), list[tuple[bool, str]]()

    @contextlib.asynccontextmanager
    async def page(kubeconfig: Path, scheduler: str) -> AsyncIterator[str]:
        asked.append((kubeconfig.exists(), scheduler))
        yield "http://127.0.0.1:1/web/#token=t"

    asyncio.run(DemoRun(DemoOptions(nodes=4, scheduler=NONE, story=()), said.append, page=page).play())
    assert asked == [(True, "")]
    assert any("http://127.0.0.1:1/web/#token=t" in line for line in said)
