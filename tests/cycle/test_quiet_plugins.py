"""A plugin that signed nothing for a class is not called for rows that change, either."""

from kubenexus.api.keys import network
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.properties.table_content import fresh_table_of, table_of


def test_a_plain_pod_is_not_drawn_to_a_node_on_a_fabric_that_changes() -> None:
    plugins, pod = profile_plugins(shipped_profile()), a_pod("plain", cpu=1)
    fabric = {network.FABRIC_TYPE.key: "nvswitch"}
    ledger, cache = a_ledger([a_node(f"n{i}", labels=fabric) for i in range(30)]), ClassCache(plugins)
    table_of(pod, ledger, cache)
    ledger.upsert_node(a_node("n1", labels=fabric, cpu=6))
    builds = cache.work.builds
    found = table_of(pod, ledger, cache)
    assert cache.work.builds == builds, "the row alone is computed again"
    assert found["n1"]["raw"]["NetworkFabricScore"] == 50
    assert found == fresh_table_of(pod, ledger, plugins)
