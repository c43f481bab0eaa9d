"""Every label and annotation key that KubeNexus reads or writes, as data.

One table holds the spellings of a key, the objects it is on, its values and their meaning. Parsing (`read_key`) and the
manual (docs/keys.md) are made from it, so they cannot drift apart. No other module spells a key:

    gang = read_key(keys.gang.NAME, pod.metadata.labels, pod.metadata.annotations)
    cpus = read_indexed_key(keys.numa.CPUS, node.metadata.labels, node.metadata.annotations)  # {(0,): ..., (1,): ...}
"""

from kubenexus.api.keys import discovered, gang, gpu, network, numa, scheduler, tenant, workload
from kubenexus.api.keys.entry import Index, KeyEntry, KeyKind, Section, Spelling
from kubenexus.api.keys.reading import KeyConflict, KeyProblem, KeyReading, read_indexed_key, read_key

__all__ = [
    "KEYS",
    "SECTIONS",
    "Index",
    "KeyConflict",
    "KeyEntry",
    "KeyKind",
    "KeyProblem",
    "KeyReading",
    "Section",
    "Spelling",
    "discovered",
    "gang",
    "gpu",
    "network",
    "numa",
    "read_indexed_key",
    "read_key",
    "scheduler",
    "tenant",
    "workload",
]

# In the order of the manual.
SECTIONS: tuple[Section, ...] = (
    gang.SECTION,
    tenant.SECTION,
    workload.SECTION,
    numa.SECTION,
    gpu.SECTION,
    network.SECTION,
    discovered.SECTION,
    scheduler.SECTION,
)

# All spellings.
KEYS = frozenset[str]().union(*(entry.keys for section in SECTIONS for entry in section.entries))
