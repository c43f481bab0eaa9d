"""What the chart allows, made from the code: rules of the ClusterRoles, and keys that discovery writes.

python -m tests.deploy.role_rules deploy/helm/kubenexus/files
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from kubenexus.app.http.api.paths import PATHS, WHATIF
from kubenexus.app.permissions import (
    KUEUE_PERMISSIONS,
    OPTIONAL_PERMISSIONS,
    PROVISIONING_PERMISSIONS,
    SERVING_PERMISSIONS,
    Permission,
    required_permissions,
)
from kubenexus.app.watch.informers import WATCHED_KINDS
from kubenexus.discovery.permissions import PERMISSIONS, key_expressions

HEAD = "# Made from the code by `make manifests`; tests/deploy/test_chart.py compares."


def cluster_permissions() -> list[Permission]:
    """Returns what the scheduler does in all namespaces. Its lease is a Role's."""
    return [*required_permissions(WATCHED_KINDS, None), *OPTIONAL_PERMISSIONS, *SERVING_PERMISSIONS]


def grouped(permissions: Iterable[Permission]) -> dict[tuple[str, tuple[str, ...]], list[str]]:
    """Returns the resources by API group and verbs."""
    verbs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in permissions:
        resource = f"{each.resource.plural}/{each.part}" if each.part else each.resource.plural
        verbs[each.resource.group, resource].add(each.verb)
    rules: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource), allowed in sorted(verbs.items()):
        rules[group, tuple(sorted(allowed))].append(resource)
    return rules


def page(permissions: Iterable[Permission]) -> str:
    """Returns the rules as YAML."""
    lines = [HEAD]
    for (group, verbs), resources in sorted(grouped(permissions).items()):
        name = group or '""'
        lines += [f"- apiGroups: [{name}]", f"  resources: [{', '.join(resources)}]", f"  verbs: [{', '.join(verbs)}]"]
    return "\n".join(lines) + "\n"


def api_page() -> str:
    """Returns the rules for readers of the live API."""
    read = [path for path in PATHS if path != WHATIF]
    lines = [HEAD, f"- nonResourceURLs: [{', '.join(read)}]", "  verbs: [get]"]
    return "\n".join([*lines, f"- nonResourceURLs: [{WHATIF}]", "  verbs: [post]"]) + "\n"


def files() -> dict[str, str]:
    """Returns the files of the chart that are made from the code, by name."""
    keys = "".join(f"{name}: '{expression}'\n" for name, expression in key_expressions().items())
    return {
        "cluster-role-rules.yaml": page(cluster_permissions()),
        "kueue-role-rules.yaml": page(KUEUE_PERMISSIONS),
        "provisioning-role-rules.yaml": page(PROVISIONING_PERMISSIONS),
        "api-reader-rules.yaml": api_page(),
        "discovery-role-rules.yaml": page(PERMISSIONS),
        "discovery-keys.yaml": f"{HEAD}\n{keys}",
    }


if __name__ == "__main__":
    for name, text in files().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")
