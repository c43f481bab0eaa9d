"""The NodeFeatureRule of examples/ makes labels that the scheduler reads, on machines as NFD sees them."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubenexus.api.devices.inventory import NodeFacts, node_devices
from kubenexus.api.keys import KEYS
from kubenexus.api.keys.entry import pattern
from tests.discovery.machine_trees import description

RULE = yaml.safe_load((Path(__file__).parents[2] / "examples/discovery/node-feature-rule.yaml").read_text("utf-8"))


def nfd_labels(features: dict[str, Any]) -> dict[str, str]:
    """Does what NFD does with the rules, as far as they go: In, Exists, `range`, `len` and values that begin with @."""
    labels: dict[str, str] = {}
    for rule in RULE["spec"]["rules"]:
        (term,) = rule["matchFeatures"]
        found = features[term["feature"]]
        wanted = term["matchExpressions"].items()
        if isinstance(found, dict):
            matched: Any = [found] if all(name in found for name, _ in wanted) else []
        else:
            matched = [each for each in found if all(each[name] in test["value"] for name, test in wanted)]
        if not matched:
            continue
        for key, text in rule.get("labels", {}).items():
            labels[key] = str(found[text.rpartition(".")[2]]) if text.startswith("@") else text
        text = rule.get("labelsTemplate", "").replace("{{ len .pci.device }}", str(len(matched)))
        for body in re.findall(r"{{ range \.pci\.device }}(.*?){{ end }}", text, re.DOTALL):
            lines = "".join(filled(body, each) for each in matched)
            text = text.replace(f"{{{{ range .pci.device }}}}{body}{{{{ end }}}}", lines)
        labels |= dict(line.split("=") for line in text.split())
    return labels


def filled(body: str, values: dict[str, str]) -> str:
    return re.sub(r"{{ \.(\w+) }}", lambda name: values[name[1]], body)


def features(name: str) -> dict[str, Any]:
    machine = description(name)
    devices = [facts.split() for facts in machine["pci"].values()]
    listed = [{"vendor": vendor, "device": device, "class": kind[:4]} for vendor, device, kind, _ in devices]
    return {"memory.numa": {"node_count": len(machine["numa"])}, "pci.device": listed}


@pytest.mark.parametrize(
    ("name", "resource", "models", "zones"),
    [
        ("dgx-h100", "nvidia.com/gpu", ["H100-SXM5-80GB"] * 8, [0] * 4 + [1] * 4),
        ("gb200-nvl72", "nvidia.com/gpu", ["GB200"] * 4, [0, 0, 1, 1]),
        ("mi300x", "amd.com/gpu", ["MI300X"] * 8, [0] * 4 + [1] * 4),
        ("dual-socket", "", [], []),
    ],
)
def test_the_labels_of_the_rule_name_the_cards(name: str, resource: str, models: list[str], zones: list[int]) -> None:
    labels = nfd_labels(features(name))
    assert [key for key in labels if not any(pattern(each).fullmatch(key) for each in KEYS)] == []
    offered = ((resource, len(models)),) if resource else ()
    found = node_devices(NodeFacts(labels, {}, offered))
    assert [each.model for each in found.devices] == models
    assert [each.numa for each in found.devices] == zones
    assert found.warnings == ()


def test_an_infiniband_adapter_is_told_by_its_class() -> None:
    adapter = {"vendor": "15b3", "device": "1021", "class": "0207"}
    labels = nfd_labels({"memory.numa": {}, "pci.device": [adapter]})
    assert labels == {"network.kubenexus.io/fabric-type": "infiniband"}
