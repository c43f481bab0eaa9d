"""What an explanation says about NUMA nodes: what is free, what the pod would get, and why not."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.numa.admission import Admission
from kubenexus.api.numa.machine import members
from kubenexus.api.numa.pod_demand import ContainerDemand, PodDemand, numa_demand
from kubenexus.framework.decision import Decision
from kubenexus.plugins.devices.need_text import memory_text
from kubenexus.state.ledger import Ledger
from kubenexus.state.numa.columns import NumaColumns, RowNuma
from kubenexus.state.numa.zone_states import ZoneState

MOST_NODES: Final = 3  # that refuse the pod and are shown
_LOOKED_AT: Final = 256  # nodes that are asked for a refusal


class NumaAmount(msgspec.Struct, frozen=True, gc=False):
    """What a NUMA node has of one resource. `cpu` are exclusive CPUs."""

    resource: str
    free: int
    total: int


class NumaNodeFacts(msgspec.Struct, frozen=True, gc=False):
    """One NUMA node by its number."""

    id: int
    amounts: tuple[NumaAmount, ...]


class NumaFacts(msgspec.Struct, frozen=True, gc=False):
    """One node: its kubelet's policy and scope, its NUMA nodes, and what its kubelet would say. `gets` are the numbers
    of the NUMA nodes that the pod would get, empty where none is preferred. `refused` is the reason, `why` in words.
    `unsure` says what is not known for certain. Policy and scope are empty where labels name the NUMA nodes: nothing is
    known of the kubelet then."""

    node: str
    policy: str
    scope: str
    zones: tuple[NumaNodeFacts, ...]
    gets: tuple[int, ...] = ()
    refused: str = ""
    why: str = ""
    unsure: str = ""


def numa_section(pod: Pod, decision: Decision, ledger: Ledger) -> tuple[NumaFacts, ...]:
    """Returns the node that the pod goes to, or some nodes whose kubelet would refuse it; nothing if the pod asks
    nothing of NUMA nodes or no node reports anything."""
    demand, columns = numa_demand(pod), ledger.nodes
    if demand is None or not (columns.numa.any or columns.numa.unusable):
        return ()
    placed = [each.node for each in decision.placements if each.pod == pod.key]
    names = placed or sorted(columns.row_of)[:_LOOKED_AT]
    found = [_facts(name, demand, ledger) for name in names]
    return tuple(found) if placed else tuple(each for each in found if each.refused)[:MOST_NODES]


def render_numa(section: Iterable[NumaFacts]) -> list[str]:
    """Returns the lines of the section."""
    lines = list[str]()
    for facts in section:
        on = f"NUMA     {facts.node} ({f'{facts.policy}, {facts.scope} scope' if facts.policy else 'by its labels'})"
        if facts.refused:
            lines.append(f"{on}: {facts.refused}: {facts.why}")
        elif not facts.zones:
            lines.append(f"NUMA     {facts.node}: unknown")
        elif facts.gets:
            lines.append(f"{on}: would get {_numbers(facts.gets)}")
        else:
            lines.append(f"{on}: any NUMA nodes")
        for zone in facts.zones:
            free = ", ".join(
                f"{_amount(each.resource, each.free)} of {_bare(each.resource, each.total)}" for each in zone.amounts
            )
            lines.append(f"         NUMA {zone.id}: {free or 'nothing is reported'}")
        if facts.unsure:
            lines.append(f"         {facts.unsure}")
    return lines


def _facts(name: str, demand: PodDemand, ledger: Ledger) -> NumaFacts:
    numa, row = ledger.nodes.numa, ledger.nodes.row_of.get(name, -1)
    here = numa.of_row(row)
    if here is None:
        return NumaFacts(name, "", "", (), unsure=f"{_no_picture(numa, row)}: its kubelet is not predicted")
    states = [numa.states.states[code] for code in numa.codes_of(row)]
    zones = tuple(NumaNodeFacts(state.id, tuple(_amounts(state, here))) for state in states)
    if not here.reported.judged:
        return NumaFacts(name, "", "", zones, unsure="it has no NodeResourceTopology: its kubelet is not predicted")
    said, kubelet = numa.admit(here, demand), here.reported.kubelet
    return NumaFacts(
        name,
        kubelet.policy,
        "pod" if kubelet.pod_scope else "container",
        zones,
        _gets(said, here),
        said.reason,
        _why(said, demand, states, here) if said.reason else "",
        _unsure(numa, row, here),
    )


def _no_picture(numa: NumaColumns, row: int) -> str:
    problem = numa.unusable.get(row)
    return (
        "it has no NodeResourceTopology" if problem is None else f"its NodeResourceTopology cannot be used ({problem})"
    )


def _amounts(state: ZoneState, here: RowNuma) -> Iterator[NumaAmount]:
    if here.reported.kubelet.static_cpus:
        yield NumaAmount("cpu", state.free_cpus, state.all_cpus)
    for resource, total, free in (*state.memory, *state.devices):
        yield NumaAmount(resource, free, total)


def _gets(said: Admission, here: RowNuma) -> tuple[int, ...]:
    if said.reason:
        return ()
    zones = 0
    for allocation in said.containers.values():
        zones |= (allocation.affinity.zones if allocation.affinity else None) or 0
    return tuple(here.reported.ids[zone] for zone in members(zones))


def _why(said: Admission, demand: PodDemand, states: list[ZoneState], here: RowNuma) -> str:
    """Returns what the container that is refused wants, and what each NUMA node lacks of it."""
    wanted = next((each for each in demand.containers if each.name == said.container), None)
    asked = dict(_wanted(wanted or demand, here))
    text = " and ".join(_amount(resource, number) for resource, number in asked.items())
    lacks = []
    for state in states:
        short = [
            _amount(each.resource, each.free)
            for each in _amounts(state, here)
            if each.free < asked.get(each.resource, 0)
        ]
        if short:
            lacks.append(f"NUMA {state.id} has {' and '.join(short)}")
        elif not state.own_group and here.reported.kubelet.static_memory:
            lacks.append(f"NUMA {state.id} shares memory with others")
    return f"{text}: {', '.join(lacks)}" if lacks else f"{text}: {said.message}"


def _wanted(demand: ContainerDemand | PodDemand, here: RowNuma) -> Iterator[tuple[str, int]]:
    kubelet = here.reported.kubelet
    if demand.cpus and kubelet.static_cpus:
        yield "cpu", demand.cpus
    yield from (demand.memory or ()) if kubelet.static_memory else ()
    for resource, number in demand.devices:
        if resource in here.reported.machine.devices:
            yield resource, number


def _unsure(numa: NumaColumns, row: int, here: RowNuma) -> str:
    if row in numa.contradicted:
        return "its kubelet has refused a pod that was expected to fit: not certain until its next report"
    if here.unknown:
        return "it is not known which NUMA nodes some of its pods hold: what is hidden there is guessed"
    return ""


def _amount(resource: str, number: int) -> str:
    if resource == "cpu":
        return f"{number} core{'' if number == 1 else 's'}"
    if resource == "memory" or resource.startswith("hugepages-"):
        return f"{memory_text(number)} of {resource}"
    return f"{number} GPU{'' if number == 1 else 's'}" if resource.endswith("/gpu") else f"{number} {resource}"


def _bare(resource: str, number: int) -> str:
    is_memory = resource == "memory" or resource.startswith("hugepages-")
    return memory_text(number) if is_memory else str(number)


def _numbers(ids: tuple[int, ...]) -> str:
    return "NUMA " + " and ".join(map(str, ids))
