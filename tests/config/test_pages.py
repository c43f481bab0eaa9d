"""Every configuration a page or a folder shows loads, and the page says what the program does."""

import re
from pathlib import Path

import pytest

from kubenexus.config import load, validate
from kubenexus.config.args import KINDS, SETTINGS
from kubenexus.config.parse_yaml import MAX_BYTES, MAX_LEVELS, MAX_VALUES
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.plugins import BUILT_IN
from tests.config.builders import HEAD, a_plugin

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
OURS = (
    *("KubeNexus", "Coscheduling", "ResourceReservation", "GangPreemption"),
    *("Kueue", "WorkloadAwareScoring", "TenantHardwareAffinityScore"),
)
EXAMPLES = sorted((ROOT / "examples" / "config").glob("*.yaml"))


@pytest.mark.parametrize("text", [*SHOWN, *(path.read_text(encoding="utf-8") for path in EXAMPLES)])
def test_every_example_loads_and_can_be_run(text: str) -> None:
    others = re.findall(r"^# needs: (\w+)", text)
    registry = {**BUILT_IN, **{name: a_plugin(name, ["filter", "score"]) for name in others}}
    configuration = load(text, registry)
    for profile in configuration.profiles:
        ProfilePlugins(profile, registry)
    assert [note for note in configuration.notes if "not built yet" not in note.message] == []


def test_there_are_examples_to_load() -> None:
    assert len(SHOWN) >= 5
    assert len(EXAMPLES) >= 5


def test_the_problems_on_the_page_are_those_of_the_program() -> None:
    wrong = "[{name: NodeAfinity}, {name: ImageLocality}, {name: NodeAffinity, weight: -1}]"
    found = validate(f"{HEAD}profiles: [{{plugins: {{score: {{enabled: {wrong}}}}}}}]", BUILT_IN)
    assert all(f"\n{problem}\n" in PAGE for problem in found)
    assert f"\n{len(found)} problems\n" in PAGE


def test_the_page_names_every_plugin_with_arguments_every_setting_and_the_limits() -> None:
    missing = [name for name in KINDS if f"`{name}`" not in PAGE]
    assert missing == []
    settings = [
        field.strip("`") for field in re.findall(rf"^\| (?:`(?:{'|'.join(OURS)})` )?\| (`\w+`) \|", PAGE, re.MULTILINE)
    ]
    assert settings == [
        "tieBreak",
        "seed",
        "tierBoosts",
        "namespacePriorities",
        "allowPodTier",
        "queueUsageHalfLifeSeconds",
        "queues",
        "gangDeadlineSeconds",
        "topologyLevels",
        "topologyDefaults",
        "starvation",
        "reservationSeconds",
        "provisioningClassName",
        "backfill",
        "namespaces",
        "unlimitedNamespaces",
        "maxPercent",
        "maxDuration",
        "writeObjects",
        "admissionChecks",
        "cpuWeight",
        "memoryWeight",
        "gpuWeight",
        "scores",
        "costFactors",
        "allowedTiers",
        "tenantAllowedTiers",
        "pdbPolicy",
        "tierPreemption",
        "servicesPreemptBatch",
        "reclaim",
        "protectedNamespaces",
        "cooldownSeconds",
        "maxVictims",
        "consolidation",
        "maxMovedPods",
    ]
    assert set(settings[:6]) <= set(KINDS[SETTINGS].__struct_encode_fields__)
    assert f"{MAX_BYTES >> 20} MiB" in PAGE
    assert f"{MAX_VALUES:,} values" in PAGE
    assert f"{MAX_LEVELS} levels" in PAGE
