"""The published JSON schema of the live API, made from the structs that it answers with.

python -m kubenexus.explain.api_schema > docs/api-schema.json
"""

import sys
from typing import Any

import msgspec

from kubenexus.app.http.api.documents import PUBLISHED
from kubenexus.explain.cluster_map import ClusterMap
from kubenexus.explain.gang_report import GangPage
from kubenexus.explain.live_answers import DevicePage, LiveExplanation, LiveForecast


def schema() -> dict[str, Any]:
    """Returns one definition for each struct, by name, as JSON Schema 2020-12."""
    published = (*PUBLISHED, ClusterMap, DevicePage, GangPage, LiveExplanation, LiveForecast)
    _, definitions = msgspec.json.schema_components(published, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "KubeNexus API v1",
        "$defs": definitions,
    }


def text() -> str:
    """Returns the file."""
    return msgspec.json.format(msgspec.json.encode(schema(), order="deterministic"), indent=1).decode() + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
