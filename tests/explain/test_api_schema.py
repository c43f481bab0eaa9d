"""The published schema is that of the code, and answers keep to it."""

import json
from pathlib import Path

from kubenexus.explain import api_schema

PAGE = Path(__file__).parents[2] / "docs" / "api-schema.json"


def test_the_published_schema_is_generated_from_the_structs() -> None:
    assert PAGE.read_text(encoding="utf-8") == api_schema.text(), "run `make docs`"


def test_each_reference_has_a_definition() -> None:
    found = json.loads(PAGE.read_text(encoding="utf-8"))
    names = {part.partition('"')[0] for part in json.dumps(found).split("#/$defs/")[1:]}
    assert names <= set(found["$defs"])
    assert {"LiveExplanation", "LiveForecast", "JobPage", "DecisionPage", "WhatIfRequest"} <= set(found["$defs"])
