"""Prints the packages of an installation as a CycloneDX 1.6 document: name, version, license and what needs what.

python scripts/sbom.py FOLDER          FOLDER is a virtual environment, or any folder with packages in it

The document depends on the packages alone: the same ones give the same bytes.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

ROOT = "kubenexus"


def document(folder: Path) -> dict[str, Any]:
    """Returns the document for the packages below `folder`. Raises LookupError if KubeNexus is not among them."""
    found = {canonical(each.metadata["Name"]): each for each in packages(folder)}
    if ROOT not in found:
        raise LookupError(f"there is no {ROOT} below {folder}")
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(found[ROOT], "application")},
        "components": [component(found[name], "library") for name in sorted(found) if name != ROOT],
        "dependencies": [
            {"ref": reference(found[name]), "dependsOn": sorted(reference(found[each]) for each in needs)}
            for name in sorted(found)
            for needs in [needed(found[name]) & found.keys()]
        ],
    }


def packages(folder: Path) -> Iterator[Distribution]:
    """Each distribution whose metadata lies below `folder`."""
    places = sorted({str(info.parent) for info in folder.rglob("*.dist-info")})
    yield from distributions(path=places)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def reference(package: Distribution) -> str:
    """The package URL, which is also its reference within the document."""
    return f"pkg:pypi/{canonical(package.metadata['Name'])}@{package.version}"


def component(package: Distribution, kind: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "type": kind,
        "bom-ref": reference(package),
        "name": canonical(package.metadata["Name"]),
        "version": package.version,
        "purl": reference(package),
    }
    names = sorted(set(licenses(package)))
    if is_expression(package):
        described["licenses"] = [{"expression": names[0]}]
    elif names:
        described["licenses"] = [{"license": {"name": name}} for name in names]
    return described


def is_expression(package: Distribution) -> bool:
    return "License-Expression" in package.metadata


def licenses(package: Distribution) -> Iterator[str]:
    """What the package says of its license: the expression, else the classifier, else the first line of the text."""
    if is_expression(package):
        yield package.metadata["License-Expression"]
        return
    classifiers: Iterable[str] = package.metadata.get_all("Classifier") or ()
    named = [each.rsplit(" :: ", 1)[-1] for each in classifiers if each.startswith("License :: OSI Approved :: ")]
    yield from named or [text.splitlines()[0] for text in package.metadata.get_all("License") or () if text.strip()]


def needed(package: Distribution) -> set[str]:
    """The names of the packages that this one may need, with every extra."""
    names = (re.match(r"[A-Za-z0-9._-]+", each) for each in package.requires or ())
    return {canonical(match.group()) for match in names if match} - {canonical(package.metadata["Name"])}


if __name__ == "__main__":
    print(json.dumps(document(Path(sys.argv[1])), indent=2))
