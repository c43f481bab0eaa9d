"""A pod waits until all its claims are bound, and each change of a claim costs one check for each pod that waits."""

import asyncio

import pytest

from kubenexus.api.storage import PersistentVolumeClaim
from kubenexus.bind.job_binding import AlwaysWritable, PodBinding
from kubenexus.bind.volume_prebind import VolumePreBind
from kubenexus.state.volumes.pod_volumes import VolumeChoice, pod_volumes
from tests.async_helpers import yield_to_loop
from tests.bind.server import PodServer
from tests.volumes.builders import a_claim, a_mounting_pod

MANY = 50


class Claims(dict[str, PersistentVolumeClaim]):
    """Counts how often it is read."""

    reads = 0

    def get(self, key: str, default: object = None) -> PersistentVolumeClaim | None:  # type: ignore[override]
        self.reads += 1
        return super().get(key)


def names(count: int) -> list[str]:
    return [f"data{i}" for i in range(count)]


def waiting(pod: str, claims: list[str]) -> PodBinding:
    mounting = a_mounting_pod(pod, *claims)
    mounts = pod_volumes(mounting)
    assert mounts is not None
    return PodBinding(mounting, "n", tuple(VolumeChoice(use.position, "") for use in mounts.claims))


def some_claims(*names: str) -> Claims:
    return Claims({f"default/{name}": a_claim(name, selected="n") for name in names})


async def ends(claims: Claims, *changes: PersistentVolumeClaim | str) -> str | None:
    """What becomes of a pod with all claims after these changes, or deletions; None while it waits."""
    point = VolumePreBind(PodServer(), AlwaysWritable(), claims, {})
    task = asyncio.ensure_future(point.pre_bind(waiting("db", [key.partition("/")[2] for key in claims])))
    await yield_to_loop()
    for change in changes:
        name = change if isinstance(change, str) else change.metadata.name
        claims.pop(f"default/{name}")
        if not isinstance(change, str):
            claims[f"default/{name}"] = change
        point.on_claim_changed(f"default/{name}")
    await yield_to_loop()
    try:
        return task.result() if task.done() else None
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert point._waiting == {}


A, B = (a_claim(name, volume="v", selected="n") for name in ("a", "b"))


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        pytest.param([], None, id="nothing changes"),
        pytest.param([A], None, id="one of two is bound"),
        pytest.param([A, B], "", id="both are bound"),
        pytest.param([A, a_claim("a", selected="n"), B], None, id="one is no longer bound"),
        pytest.param([A, a_claim("b")], 'binding volumes: provisioning failed for PVC "b"', id="given up"),
        pytest.param(["b"], 'binding volumes: persistentvolumeclaim "default/b" not found', id="deleted"),
    ],
)
def test_what_a_change_of_a_claim_means(changes: list[PersistentVolumeClaim | str], end: str | None) -> None:
    async def life() -> None:
        assert await ends(some_claims("a", "b"), *changes) == end

    asyncio.run(life())


def test_a_change_of_a_claim_that_pods_share_has_this_claim_checked_alone() -> None:
    async def life() -> None:
        claims = some_claims(*names(MANY))
        point = VolumePreBind(PodServer(), AlwaysWritable(), claims, {})
        tasks = [asyncio.ensure_future(point.pre_bind(waiting(f"db{i}", names(MANY)))) for i in range(MANY)]
        await yield_to_loop()
        before = claims.reads
        point.on_claim_changed("default/data0")
        await yield_to_loop()
        assert claims.reads - before <= 2 * MANY, "not each claim of each pod"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(life())
