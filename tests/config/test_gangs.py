"""What a configuration says about gangs, as the planner and the assembly get it."""

from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.api.gangs.levels import DEFAULT_LEVELS, TopologyLevel
from kubenexus.config.gang_settings import GangSettings, gang_settings
from kubenexus.framework.aging import HIGHEST, Aging
from tests.config.builders import loaded


def settings(args: str) -> GangSettings:
    profile = f"profiles: [{{pluginConfig: [{{name: Coscheduling, args: {args}}}]}}]"
    return gang_settings(loaded(profile).args["kubenexus-scheduler"]["Coscheduling"])


def test_what_goes_when_nothing_is_said() -> None:
    assert settings("{}") == gang_settings({}) == GangSettings()
    assert GangSettings().levels == DEFAULT_LEVELS
    assert GangSettings().deadline == 300.0
    assert GangSettings().default_topology("ml") == NO_TOPOLOGY_REQUEST


def test_levels_by_name_and_label() -> None:
    said = settings("{topologyLevels: [{name: host, keys: [kubernetes.io/hostname]}, {name: hall, keys: [x/a, x/b]}]}")
    assert said.levels == (TopologyLevel("host", ("kubernetes.io/hostname",)), TopologyLevel("hall", ("x/a", "x/b")))


def test_nodes_are_the_innermost_level_whoever_names_others() -> None:
    assert settings("{topologyLevels: [{name: hall, keys: [x/a]}]}").levels == (
        DEFAULT_LEVELS[0],
        TopologyLevel("hall", ("x/a",)),
    )


def test_how_close_gangs_are_by_namespace() -> None:
    said = settings(
        '{topologyDefaults: [{namespaces: [ml, hpc], required: rack}, {namespaces: ["*"], preferred: zone}]}'
    )
    assert said.default_topology("ml") == said.default_topology("hpc") == TopologyRequest("rack")
    assert said.default_topology("web") == TopologyRequest("", "zone")


def test_the_deadline() -> None:
    assert settings("{gangDeadlineSeconds: 60}").deadline == 60.0


def test_waiting_makes_urgent_unless_a_profile_has_the_name_of_kube_scheduler() -> None:
    assert settings("{}").aging == Aging(60.0, 100, HIGHEST)
    assert gang_settings({}, "default-scheduler").aging is None
    assert gang_settings({"starvation": {"boost": 7}}, "default-scheduler").aging == Aging(60.0, 7, HIGHEST)
    assert settings("{starvation: {thresholdSeconds: 30, ceiling: 5000}}").aging == Aging(30.0, 100, 5000)
    assert settings("{starvation: {thresholdSeconds: 0}}").aging is None


def test_for_how_long_room_is_kept_for_the_first_gang_in_line() -> None:
    assert settings("{}").reservation_seconds == 300.0
    assert settings("{reservationSeconds: 0}").reservation_seconds == 0.0
    assert gang_settings({}, "default-scheduler").reservation_seconds == 0.0
    assert gang_settings({"reservationSeconds": 60}, "default-scheduler").reservation_seconds == 60.0
