"""A burst of pods against kubelets that admit from their own state and report now and then."""

import random

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.numa.machine import Kubelet
from kubenexus.framework.profile import EnabledPlugin, Profile
from kubenexus.plan.decide import Planner
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.sim.kubelets.numa_kubelet import NumaKubelet, a_machine
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import Run, a_ledger
from tests.api.numa.builders import GPU, a_numa_pod, guaranteed

GI = 1 << 30
NODES, PODS, REPORT_EVERY = 8, 160, 12


def a_pod_of_any_size(name: str, chance: random.Random) -> Pod:
    def one(part: str) -> object:
        return guaranteed(part, str(chance.choice([1, 2, 3, 4, 6, 8, 10])), f"{chance.choice([1, 2, 4, 8])}Gi")

    containers = [guaranteed("main", str(chance.choice([1, 2, 4, 6, 8, 14])), "2Gi", chance.choice([0, 0, 1, 2]))]
    if chance.random() < 0.2:
        containers.append(one("second"))  # type: ignore[arg-type]
    init = [one("init")] if chance.random() < 0.2 else []
    return a_numa_pod(*containers, init=init, name=name)  # type: ignore[arg-type]


def rejections(profile: Profile, policy: str, pod_scope: bool, seed: int) -> tuple[int, int]:
    """Returns how many of the pods that were placed their kubelets refused, and how many were placed."""
    chance = random.Random(seed)
    kubelet = Kubelet(policy, pod_scope, static_cpus=True, static_memory=True)
    machine = a_machine(2, 16, 48 * GI, {GPU: 2})
    kubelets = {f"n{number}": NumaKubelet(f"n{number}", kubelet, machine) for number in range(NODES)}
    ledger = a_ledger([a_node(name, cpu=30, memory="96Gi", resources={GPU: 4}) for name in kubelets])
    run = Run(ledger, Planner(profile_plugins(profile)), {})
    refused = placed = 0
    running: list[str] = []
    for number in range(PODS):
        if number % REPORT_EVERY == 0:
            for each in kubelets.values():
                ledger.upsert_node_topology(each.report())
            ledger.read_devices()
        pod = a_pod_of_any_size(f"p{number}", chance)
        node = run.then([pod]).placements.get(f"p{number}")
        if node is not None:
            placed += 1
            if kubelets[node].admit(pod).admitted:
                spec = msgspec.structs.replace(pod.spec, node_name=node)
                status = msgspec.structs.replace(
                    pod.status, start_time=f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
                )
                ledger.upsert_pod(msgspec.structs.replace(pod, spec=spec, status=status))
                running.append(pod.key)
            else:
                refused += 1
                ledger.remove_pod(pod.key)
        if len(running) > 3 * NODES or (node is None and running):
            gone = running.pop(chance.randrange(len(running)))
            for each in kubelets.values():
                each.remove(gone)
            ledger.remove_pod(gone)
    return refused, placed


@pytest.mark.parametrize("policy", ["single-numa-node", "restricted", "best-effort"])
@pytest.mark.parametrize("pod_scope", [False, True], ids=["container scope", "pod scope"])
def test_kubelets_refuse_hardly_any_pod_that_was_placed(policy: str, pod_scope: bool) -> None:
    with_numa = default_profile(also=[EnabledPlugin("NUMATopology", 4)])
    refused, placed = rejections(with_numa, policy, pod_scope, seed=1)
    assert placed > 60
    assert refused <= 1
    if policy != "best-effort":  # which refuses hardly any pod in any case
        assert rejections(default_profile(), policy, pod_scope, seed=1)[0] > 5
