"""The kind ResourceReservation as deploy/ installs it: what the schema accepts, fills in, refuses and prints."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubenexus.api.codec import from_data
from kubenexus.api.reservations.request import request_of
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.config import load
from kubenexus.plugins import BUILT_IN
from tests.sim.server.server_fixture import ServerFixture

ROOT = Path(__file__).parents[3]
DEFINITION, ROLE = yaml.safe_load_all((ROOT / "deploy" / "resourcereservations.yaml").read_text(encoding="utf-8"))
FOLDER = ROOT / "examples" / "reservations"
EXAMPLES = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yaml"))}
PATH = "/apis/scheduling.kubenexus.io/v1alpha1/namespaces/kubenexus-system/resourcereservations"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
def server() -> ServerFixture:
    found = ServerFixture()
    found.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    found.do("POST", "/api/v1/namespaces", {"metadata": {"name": "kubenexus-system"}})
    return found


def a_reservation(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.kubenexus.io/v1alpha1",
        "kind": "ResourceReservation",
        "metadata": {"name": "r"},
        "spec": spec,
    }


@pytest.mark.parametrize("name", [name for name, each in EXAMPLES.items() if each["kind"] == "ResourceReservation"])
def test_every_example_is_accepted_as_it_is_and_can_be_used(server: ServerFixture, name: str) -> None:
    made = server.do("POST", PATH, EXAMPLES[name])
    assert made["spec"] == EXAMPLES[name]["spec"]
    assert request_of(from_data(made, ResourceReservation)).entries


def test_the_example_configuration_loads_without_remarks() -> None:
    loaded = load(yaml.safe_dump(EXAMPLES["scheduler-config.yaml"]), BUILT_IN)
    assert [note for note in loaded.notes if "ResourceReservation" in f"{note.path} {note.message}"] == []


def test_gpus_of_entries_are_kept_and_the_duration_is_filled_in(server: ServerFixture) -> None:
    """RR-3."""
    made = server.do("POST", PATH, a_reservation(reservations={"w": {"gpu": 8, "resources": {"example.com/nic": "1"}}}))
    assert made["spec"] == {
        "duration": "10m",
        "reservations": {"w": {"gpu": 8, "resources": {"example.com/nic": "1"}}},
    }


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"count": 0, "resources": {"cpu": 1}}, id="no entries"),
        pytest.param({"count": 129, "resources": {"cpu": 1}}, id="too many entries"),
        pytest.param({"count": 1, "resources": {"cpu": 1}, "duration": "soon"}, id="no duration"),
        pytest.param({"count": 1, "resources": {"cpu": 1}, "tenantTier": "iron"}, id="no tier"),
        pytest.param({"count": "many", "resources": {"cpu": 1}}, id="no number"),
    ],
)
def test_what_the_schema_refuses(server: ServerFixture, spec: dict[str, Any]) -> None:
    assert server.ask("POST", PATH, a_reservation(**spec)).code == 422


def test_get_prints_phase_owner_end_and_age(server: ServerFixture) -> None:
    server.do("POST", PATH, a_reservation(count=1, resources={"cpu": 1}))
    status = {"phase": "Active", "owner": "team-a", "expiresAt": "2026-11-17T18:10:00Z"}
    patch = "application/merge-patch+json"
    server.do("PATCH", f"{PATH}/r/status", {"status": status}, content_type=patch)
    server.clock.advance(90)
    table = server.do("GET", PATH, accept=TABLE)
    shown = [each["name"] for each in table["columnDefinitions"] if not each.get("priority")]
    assert shown == ["Name", "Phase", "Owner", "Expires", "Age"]
    cells = table["rows"][0]["cells"]
    assert (cells[:4], cells[-1]) == (["r", "Active", "team-a", "2026-11-17T18:10:00Z"], "90s")


def test_the_short_name_is_rr_and_the_role_names_no_more_than_the_kind() -> None:
    assert DEFINITION["spec"]["names"]["shortNames"] == ["rr"]
    assert {each for rule in ROLE["rules"] for each in rule["resources"]} == {
        "resourcereservations",
        "resourcereservations/status",
    }
