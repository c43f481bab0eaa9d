"""What holds when nothing is said; and a completed document, loaded again, says the same."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.base.errors import KubeNexusError
from kubenexus.config import Configuration, InvalidConfiguration, defaults, load, to_yaml, validate
from kubenexus.config.catalogue import Catalogue
from kubenexus.config.gang_settings import gang_settings
from kubenexus.config.tenant_settings import tenant_settings
from kubenexus.config.v1 import MULTI_POINT, POINTS
from kubenexus.framework.aging import HIGHEST
from kubenexus.plugins import BUILT_IN
from tests.config.builders import ALL, HEAD, loaded

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.yaml"))


def test_the_defaults_are_kube_schedulers_but_for_our_name_and_lease() -> None:
    document = yaml.safe_load(to_yaml(defaults(ALL).document))
    profiles = document.pop("profiles")
    assert document == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 16,
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": "15s",
            "renewDeadline": "10s",
            "retryPeriod": "2s",
            "resourceLock": "leases",
            "resourceName": "kubenexus-scheduler",
            "resourceNamespace": "kubenexus-system",
        },
        "clientConnection": {"contentType": "application/json", "qps": 1000.0, "burst": 2000},
        "enableProfiling": True,
        "enableContentionProfiling": True,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "delayCacheUntilActive": False,
    }
    assert [profile["schedulerName"] for profile in profiles] == ["kubenexus-scheduler"]
    assert [config["name"] for config in profiles[0]["pluginConfig"]] == [
        "Coscheduling",
        "DefaultPreemption",
        "DynamicResources",
        "GangPreemption",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "ResourceFragmentationScore",
        "ResourceReservation",
        "TenantHardwareAffinityScore",
        "VolumeBinding",
        "WorkloadAwareScoring",
        "KubeNexus",
    ]


@pytest.mark.parametrize(
    ("profile", "starvation", "seconds", "boosts"),
    [
        pytest.param("kubenexus-scheduler", (60, 100, HIGHEST), 300, (20, 10, 0), id="ours"),
        pytest.param("default-scheduler", (0, 100, HIGHEST), 0, (0, 0, 0), id="kube-scheduler's order"),
    ],
)
def test_what_depends_on_the_profile_is_printed_and_is_what_goes(
    profile: str, starvation: tuple[int, ...], seconds: int, boosts: tuple[int, ...]
) -> None:
    """Somebody who wants another number finds it in `kubenexus config defaults`."""
    whole = loaded(f"profiles: [{{schedulerName: {profile}, pluginConfig: [{{name: Coscheduling, args: {{}}}}]}}]")
    args = whole.args[profile]
    assert tuple(args["Coscheduling"]["starvation"].values()) == starvation
    assert args["Coscheduling"]["reservationSeconds"] == seconds
    assert tuple(args["KubeNexus"]["tierBoosts"].values()) == boosts
    assert gang_settings(args["Coscheduling"], profile) == gang_settings({}, profile)
    assert tenant_settings(args, profile).orders is tenant_settings({}, profile).orders
    again(whole)


@pytest.mark.parametrize("registry", [ALL, BUILT_IN, {}], ids=["all", "built", "none"])
def test_the_defaults_load_as_the_defaults(registry: Any) -> None:
    assert load(to_yaml(defaults(registry).document), registry) == defaults(registry)


def again(first: Configuration) -> None:
    second = load(to_yaml(first.document), ALL)
    assert second.profiles == first.profiles
    assert second.args == first.args
    assert to_yaml(second.document) == to_yaml(first.document)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_completed_sample_loaded_again_says_the_same(path: Path) -> None:
    if not validate(path, ALL):
        again(load(path, ALL))


NAMES = sorted(Catalogue({}).points)
PLUGINS = st.fixed_dictionaries({"name": st.sampled_from(NAMES)}, optional={"weight": st.integers(0, 9)})
SETS = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.lists(PLUGINS, max_size=2, unique_by=lambda plugin: plugin["name"]),
        "disabled": st.lists(st.builds(lambda name: {"name": name}, st.sampled_from([*NAMES, "*"])), max_size=2),
    },
)
PROFILES = st.fixed_dictionaries(
    {"schedulerName": st.sampled_from(["default-scheduler", "mine"])},
    optional={"plugins": st.dictionaries(st.sampled_from([MULTI_POINT, *POINTS]), SETS, max_size=4)},
)


@given(profile=PROFILES)
def test_any_completed_profile_loaded_again_says_the_same(profile: dict[str, Any]) -> None:
    text = HEAD + yaml.safe_dump({"profiles": [profile]})
    try:
        first = load(text, ALL)
    except InvalidConfiguration:
        return
    again(first)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", (True, True)),
        ("enableProfiling: false", (False, False)),
        ("enableProfiling: false\nenableContentionProfiling: true", (False, True)),
        ("enableContentionProfiling: false", (True, False)),
    ],
)
def test_contention_profiling_goes_with_profiling(said: str, expected: tuple[bool, bool]) -> None:
    document = load(HEAD + said, ALL).document
    assert (document.enable_profiling, document.enable_contention_profiling) == expected


@pytest.mark.parametrize(
    ("said", "path", "expected"),
    [
        ("clientConnection: {qps: 0, burst: 0, contentType: ''}", "client_connection", "1000.0 2000 application/json"),
        ("leaderElection: {leaseDuration: 0s, resourceName: ''}", "leader_election", "15s kubenexus-scheduler"),
    ],
)
def test_a_zero_is_nothing_where_go_has_no_pointer(said: str, path: str, expected: str) -> None:
    found = getattr(load(HEAD + said, ALL).document, path)
    values = [
        str(getattr(found, name))
        for name in ("qps", "burst", "content_type", "lease_duration", "resource_name")
        if hasattr(found, name)
    ]
    assert " ".join(values) == expected


def test_a_file_is_a_path_and_a_text_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD)
    assert load(path, ALL) == load(HEAD, ALL) == load(HEAD.encode(), ALL)
    with pytest.raises(KubeNexusError, match=r"cannot read .*nowhere.yaml: No such file or directory"):
        load(tmp_path / "nowhere.yaml", ALL)
    with pytest.raises(KubeNexusError, match="Is a directory"):
        load(tmp_path, ALL)


def test_a_file_without_end_is_not_read_to_its_end() -> None:
    (problem,) = validate(Path("/dev/zero"), ALL)
    assert problem.message == "the file is larger than 1024 KiB"
