"""What the bench of other schedulers declares, builds and prints, without building or starting any of them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from msgspec.structs import replace

from bench.live.cases import CASES, RACK, SCHEDULER, node
from bench.peers import __main__ as command
from bench.peers import building, report
from bench.peers.building import MODULES, Module, is_complete, replaced
from bench.peers.peer import Gang, Peer
from bench.peers.running import Result, gangs_of, members_of, partial_gangs, scattered_gangs
from bench.peers.schedulers import PEERS, koordinator, volcano, yunikorn
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess
from tests.e2e.controlplane.build import CannotBuild

BUILT = [name for name, peer in PEERS.items() if peer.module is not None]


def a_result(who: str = "volcano", **more: Any) -> Result:
    made = Result(
        who=who,
        version="1.0",
        case="gangs",
        pods=800,
        bound=800,
        seconds=8.0,
        first=1.0,
        cpu=3.0,
        server_cpu=4.0,
        peak_mb=90.0,
        partial=0,
        scattered=0,
        processes=2,
    )
    return replace(made, **more)


# --- gangs ----------------------------------------------------------------------------------------------------------


def declared(name: str, *, rack: bool) -> tuple[Any, list[Any]]:
    """A gang as this scheduler is given it: its object, and its pods."""
    peer, case = PEERS[name](), CASES["gangs-rack" if rack else "gangs"]
    gangs = gangs_of(case, 2)
    return peer.group(gangs[0]), members_of(peer, case, gangs)


# By scheduler: where a pod names its gang.
NAMED_BY = {
    "kube-scheduler": ("spec", "schedulingGroup", "podGroupName"),
    "kubenexus": ("spec", "schedulingGroup", "podGroupName"),
    "scheduler-plugins": ("metadata", "labels", "scheduling.x-k8s.io/pod-group"),
    "kueue": ("metadata", "labels", "kueue.x-k8s.io/pod-group-name"),
    "volcano": ("metadata", "annotations", "scheduling.k8s.io/group-name"),
    "yunikorn": ("metadata", "labels", "applicationId"),
    "koordinator": ("metadata", "labels", "pod-group.scheduling.sigs.k8s.io"),
    "kai": ("metadata", "annotations", "pod-group-name"),
}


@pytest.mark.parametrize("name", PEERS)
def test_gangs_are_whole_and_their_members_interleaved(name: str) -> None:
    group, pods = declared(name, rack=False)
    part, where, key = NAMED_BY[name]
    assert [pod[part][where][key] for pod in pods] == ["gang-0000", "gang-0001"] * 8
    assert group is None or group["metadata"]["name"] == "gang-0000"


@pytest.mark.parametrize("name", PEERS)
def test_the_pods_ask_for_the_scheduler_that_runs(name: str) -> None:
    _, pods = declared(name, rack=False)
    assert {pod["spec"]["schedulerName"] for pod in pods} == {PEERS[name].scheduler_name}
    assert name == "yunikorn" or PEERS[name].scheduler_name == SCHEDULER


def test_the_minimum_is_all_members() -> None:
    minimums = {}
    for name in PEERS:
        group, pods = declared(name, rack=False)
        text = json.dumps([group, pods[0]["metadata"]])
        minimums[name] = "8" in text.replace('"p-00000"', "")
    assert all(minimums.values()), minimums


@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if peer.racks])
def test_only_gangs_that_want_it_are_bound_to_a_rack(name: str) -> None:
    def texts(*, rack: bool) -> str:
        group, pods = declared(name, rack=rack)
        return json.dumps([group, pods[0]["metadata"]])

    words = (RACK, "RackLayer", "highestTierAllowed")
    assert any(word in texts(rack=True) for word in words)
    assert not any(word in texts(rack=False) for word in words)


def test_yunikorn_reserves_what_the_pods_request() -> None:
    _, pods = declared("yunikorn", rack=False)
    (group,) = json.loads(pods[0]["metadata"]["annotations"][f"{yunikorn.KEYS}/task-groups"])
    assert group["minResource"] == pods[0]["spec"]["containers"][0]["resources"]["requests"]
    assert yaml.safe_load(yunikorn.QUEUES)["partitions"][0]["queues"][0]["name"] == "root"


def test_a_pod_of_kueue_has_what_the_webhook_adds() -> None:
    peer = PEERS["kueue"]()
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    metadata = {"labels": {"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/pod-group-name": "sample"}}
    metadata |= {"finalizers": ["kueue.x-k8s.io/managed"]}  # type: ignore[dict-item]
    peer._added = {"metadata": metadata, "spec": {"schedulingGates": gates}}  # type: ignore[attr-defined]
    pods = members_of(peer, CASES["gangs"], [Gang("gang-0000", 8, False)])
    assert pods[0]["metadata"]["labels"]["kueue.x-k8s.io/managed"] == "true"
    assert pods[0]["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] == "gang-0000"
    assert (pods[0]["metadata"]["finalizers"], pods[0]["spec"]["schedulingGates"]) == (metadata["finalizers"], gates)


def test_configurations_can_be_read() -> None:
    tiers = yaml.safe_load(volcano.CONFIGURATION)["tiers"]
    assert [each["name"] for each in tiers[0]["plugins"]] == ["priority", "gang", "conformance"]
    assert {"name": "Reservation", "weight": 5000} in koordinator._enabled("score")["enabled"]
    assert koordinator._enabled("bind")["disabled"] == [{"name": "*"}]


# --- judging --------------------------------------------------------------------------------------------------------


def test_a_gang_of_which_only_some_are_bound_is_noticed() -> None:
    names = [f"p-{number:05d}" for number in range(16)]  # two gangs of eight, interleaved
    assert partial_gangs(names, 2, 8) == 0
    assert partial_gangs(names[:-1], 2, 8) == 1
    assert partial_gangs([], 2, 8) == 0


def test_a_gang_in_several_racks_is_noticed() -> None:
    def on(*numbers: int) -> dict[str, str]:
        return {f"p-{i:05d}": node(number)["metadata"]["name"] for i, number in enumerate(numbers)}

    assert scattered_gangs(on(1, 101, 2, 102), gangs=2) == 0
    assert scattered_gangs(on(1, 101, 102, 103), gangs=2) == 1


def test_the_table_has_the_fastest_of_each_case_first_and_says_what_was_not_bound() -> None:
    slow = a_result("kai", bound=500, seconds=100.0, partial=1)
    racks = a_result("volcano", case="gangs-rack", scattered=2)
    table = report.table([slow, a_result("volcano"), racks]).splitlines()
    assert [row.split(" | ")[0] for row in table[2:]] == ["| volcano 1.0", "| kai 1.0", "| volcano 1.0"]
    assert "500 of 800" in table[3]
    assert len({row.count("|") for row in table}) == 1
    assert "1 half gangs" in report.line(slow)
    assert "2 gangs in several racks" in report.line(racks)
    assert report.table([]) == ""


# --- the command ----------------------------------------------------------------------------------------------------


class Idle(Peer):
    """A scheduler without processes."""

    name = "idle"

    def start(self, plane: ControlPlane) -> list[ManagedProcess]:
        return []


class Unbuildable(Idle):
    name = "broken"

    def build(self) -> None:
        raise CannotBuild("go build in broken failed with 1")


class Rackless(Idle):
    name = "rackless"
    racks = False


def test_what_cannot_be_built_is_named_and_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PEERS", {"broken": Unbuildable, "rackless": Rackless})
    problems: list[str] = []
    ready = command.built(("broken", "rackless"), problems)
    assert [peer.name for peer in ready] == ["rackless"]
    assert problems == ["broken: cannot be built: go build in broken failed with 1"]


def test_a_scheduler_without_racks_has_one_run_and_is_named() -> None:
    steps, without = command.programme([Rackless(), Idle()], 10, 5)
    assert [(case, count) for _, case, count in steps] == [("gangs", 10), ("gangs", 10), ("gangs-rack", 5)]
    assert without == ["rackless: has no gangs within a rack"]
    assert command.programme([Rackless()], 0, 0) == ([], [])


def test_without_a_control_plane_the_command_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    refused = CliRunner().invoke(command.main, ["kubenexus"])
    assert refused.exit_code == 1
    assert "run `make controlplane` first" in refused.output


# --- building -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT)
def test_every_module_pins_its_project(name: str) -> None:
    module = PEERS[name].module
    assert module is not None
    assert PEERS[name]().version[0].isdigit()
    assert (module.pins / "go.sum").stat().st_size > 1000
    for path in module.additions:  # is replaced by a version, in which something is missing
        assert f"{path} => {path} v" in (module.pins / "go.mod").read_text()


def test_every_folder_of_pins_is_used() -> None:
    assert {folder.name for folder in MODULES.iterdir() if folder.is_dir()} == set(BUILT)


def test_other_pins_are_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "MODULES", tmp_path)
    (tmp_path / "a").mkdir()
    module, env = Module("a", "example.org/a", {"a": "example.org/a/cmd"}), {"XDG_CACHE_HOME": str(tmp_path)}
    (tmp_path / "a" / "go.sum").touch()
    (tmp_path / "a" / "go.mod").write_text("module x\n\nrequire example.org/a v1.2.3\n")
    first = module.folder(env)
    assert (module.version(), first.parent) == ("1.2.3", tmp_path / "kubenexus" / "peers" / "a")
    (tmp_path / "a" / "go.mod").write_text("module x\n")
    assert module.folder(env) != first
    with pytest.raises(CannotBuild, match=r"^a/go\.mod does not require example\.org/a$"):
        module.version()


def test_a_folder_is_complete_with_its_programs_and_kinds(tmp_path: Path) -> None:
    module = Module("a", "example.org/a", {"a": "example.org/a/cmd"})
    (tmp_path / building.KINDS).mkdir()
    assert not is_complete(module, tmp_path)
    (tmp_path / "a").touch(mode=0o755)
    assert is_complete(module, tmp_path)


def test_a_module_with_additions_is_taken_from_a_copy() -> None:
    text = (
        "module x\n\nreplace (\n\texample.org/a => example.org/a v1.0.0\n\texample.org/b => example.org/b v2.0.0\n)\n"
    )
    changed = replaced(text, "example.org/a", "./copy")
    assert "\texample.org/a => ./copy\n\texample.org/b => example.org/b v2.0.0\n" in changed
    with pytest.raises(CannotBuild, match="does not replace example"):
        replaced(text, "example.org/c", "./copy")


def test_nothing_of_another_project_is_in_the_repository() -> None:
    assert {file.name for file in MODULES.rglob("*") if file.is_file()} == {"go.mod", "go.sum"}
