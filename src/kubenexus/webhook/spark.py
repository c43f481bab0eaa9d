"""What a SparkApplication states about its executors, as annotations of its driver.

The driver makes the executors. With these annotations the scheduler reserves their capacity when it places the driver.
"""

import re
from fractions import Fraction
from typing import Final

from kubenexus.api import quantity
from kubenexus.api.keys import workload
from kubenexus.base.errors import Malformed
from kubenexus.webhook.admission import Object, part
from kubenexus.webhook.pod_sets import whole

_MIB: Final = 2**20
_UNITS: Final = {"": 1, "b": 1, "k": 2**10, "m": _MIB, "g": 2**30, "t": 2**40}
_SIZE: Final = re.compile(r"([0-9]{1,12}) ?([bkmgt]?)b?", re.IGNORECASE)
_MIN_OVERHEAD: Final = 384 * _MIB  # Spark's own rule: a tenth of the memory, and this at least


def driver_annotations(data: Object) -> dict[str, str]:
    """Returns the annotations of the driver of a SparkApplication; {} if the application does not state the size of
    its executors."""
    executor, dynamic = part(data, "spec", "executor"), part(data, "spec", "dynamicAllocation")
    size = _size(executor)
    if not size:
        return {}
    if dynamic.get("enabled") is True:
        least = whole(dynamic, "minExecutors", whole(dynamic, "initialExecutors", 0))
        return {workload.DYNAMIC_ALLOCATION.key: "true", workload.MIN_EXECUTORS.key: str(least)} | size
    return {workload.EXECUTOR_COUNT.key: str(whole(executor, "instances", 1))} | size


def _size(executor: Object) -> dict[str, str]:
    found = {}
    cores = executor.get("coreRequest") or executor.get("cores")
    try:
        if isinstance(cores, (str, int)) and quantity.to_milli(str(cores)) > 0:
            found[workload.EXECUTOR_CPU.key] = str(cores)
    except Malformed:
        pass
    memory = jvm_bytes(executor.get("memory"))
    if memory:
        overhead = jvm_bytes(executor.get("memoryOverhead")) or max(int(Fraction(memory, 10)), _MIN_OVERHEAD)
        found[workload.EXECUTOR_MEMORY.key] = f"{-(-(memory + overhead) // _MIB)}Mi"
    return found


def jvm_bytes(text: object) -> int:
    """Returns the bytes of a size as the JVM writes it, 512m or 4g; 0 if it is none."""
    match = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    return int(match[1]) * _UNITS[match[2].lower()] if match else 0
