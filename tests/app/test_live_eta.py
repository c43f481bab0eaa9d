"""When jobs are expected to start, over the live API: ranges, places, and to whom names are shown."""

from kubenexus.api.core import Pod
from kubenexus.testing.builders import a_pod
from tests.app.api_fixture import OURS, ApiFixture, served

RUNTIME = "scheduling.kubenexus.io/max-runtime"


async def busy(api: ApiFixture) -> None:
    """A pod that is expected to end, and pods of two namespaces that wait for it."""
    api.fixture.pods(*(_pod(name, namespace) for name, namespace in (("own", "ml"), ("hidden", "web"))))
    await api.fixture.work()


def _pod(name: str, namespace: str) -> Pod:
    return a_pod(name, namespace=namespace, cpu=2, scheduler_name=OURS, annotations={RUNTIME: "1h"})


def test_a_job_has_a_place_and_what_it_waits_for() -> None:
    async def story(api: ApiFixture) -> None:
        await busy(api)
        (job,) = (await api.get("/api/v1/eta?namespace=ml&name=own", "member")).json()["items"]
        assert (job["name"], job["place"], job["waiting"]) == ("ml/own", 2, 3)
        assert job["waitsFor"].startswith("0/2 nodes are available")
        assert job["likely"] == ""  # web/shop has no known end
        assert job["basis"].startswith("not known")

    served(story)


def test_an_expected_start_is_a_range_in_order() -> None:
    async def story(api: ApiFixture) -> None:
        runs = api.fixture.ledger.nodes.pods.expected_ends
        shop = runs._records[0].identity
        assert shop is not None
        for _ in range(5):
            runs.memory.observe(shop, 3600.0, None)
        await busy(api)
        page = (await api.get("/api/v1/eta?namespace=ml&name=train", "member")).json()
        (job,) = page["items"]
        assert page["time"] < job["early"] <= job["likely"] <= job["late"]
        assert job["basis"] == "jobs that run: 1 with earlier runs"

    served(story)


def test_jobs_of_other_namespaces_count_and_have_no_name() -> None:
    async def story(api: ApiFixture) -> None:
        await busy(api)
        reply = await api.get("/api/v1/eta?namespace=ml", "member")
        assert [each["name"] for each in reply.json()["items"]] == ["ml/own", "ml/train"]
        assert not [each for each in ("hidden", "shop", "secret-node") if each in reply.text]
        assert len((await api.get("/api/v1/eta")).json()["items"]) == 3
        assert (await api.get("/api/v1/eta", "member")).status == 403
        assert (await api.get("/api/v1/eta?namespace=web&name=hidden", "member")).status == 403
        missing = await api.get("/api/v1/eta?namespace=ml&name=hidden", "member")
        assert (missing.status, "web" in missing.text) == (404, False)

    served(story)


def test_a_pod_with_a_node_does_not_wait() -> None:
    async def story(api: ApiFixture) -> None:
        (job,) = (await api.get("/api/v1/eta?namespace=web&name=shop")).json()["items"]
        assert (job["state"], job["place"]) == ("scheduled", 0)

    served(story)
