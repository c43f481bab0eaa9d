"""Answers of plugins, checked where they come in.

A plugin from outside may raise or return anything. Here its answer becomes one that the program can rely on, or a
`PluginError` that names the plugin. `queue.queue_profile` checks gates and orders, `cycle.plugin_output` and `plan` the
rest.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.extension_points import PreFilterResult
from kubenexus.framework.job import Assignment
from kubenexus.framework.verdict import SKIP, Code, Skip, Verdict
from kubenexus.state.devices import DeviceShare
from kubenexus.state.volumes.pod_volumes import VolumeChoice

# All that a plugin can raise: SystemExit would end the process, and asyncio's CancelledError the task, for one pod's
# sake. Who catches it calls `plugin_error`, which lets a KeyboardInterrupt pass: that is the user's.
FAILURES: Final = BaseException
# The codes that a refusal may have. SUCCESS is none, and nobody waits at these points.
_REFUSING: Final = frozenset({Code.ERROR, Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})
_SHOWN: Final = 60  # characters of a wrong answer
_PLAIN: Final = msgspec.json.Encoder(order="deterministic").encode


class PluginError(KubeNexusError):
    """A plugin raised, or broke its contract: the attempt fails and says whose fault it was; the scheduler goes on."""

    def __init__(self, plugin: str, problem: str) -> None:
        self.plugin = plugin
        self.problem = problem
        super().__init__(f"plugin {plugin!r}: {problem}")

    @property
    def sentence(self) -> str:
        """As in kube-scheduler's events."""
        return f'running "{self.plugin}" plugin: {self.problem}'


def plugin_error(plugin: Any, error: BaseException) -> PluginError:
    """The same error with the plugin's name on it. Raises a KeyboardInterrupt."""
    reraise_interrupts(error)
    if isinstance(error, PluginError):
        return error
    return PluginError(plugin.name, f"{type(error).__name__}: {error}")


def reraise_interrupts(error: BaseException) -> None:
    """Raise what is not a plugin's to raise."""
    if isinstance(error, KeyboardInterrupt):
        raise error


def call_plugin(plugin: Any, method: Callable[..., Any], *arguments: Any) -> Any:
    """What a method of a plugin returns. Raises PluginError for whatever it raises."""
    try:
        return method(*arguments)
    except FAILURES as error:
        raise plugin_error(plugin, error) from error


def checked_verdict(answer: Any, plugin: str, point: str) -> Verdict | None:
    """A verdict with the plugin's name on it; None for one that says Success, as ports from Go return it."""
    if not isinstance(answer, Verdict):
        raise_contract_error(plugin, point, answer, "a Verdict")
    if not isinstance(answer.code, Code) or not _texts(answer.reasons):
        raise_contract_error(plugin, point, answer, "a Verdict with a Code and texts")
    if answer.code is Code.SUCCESS:
        return None
    if answer.code not in _REFUSING:
        raise_contract_error(plugin, point, answer, "a Verdict that refuses")
    return Verdict(answer.code, tuple(answer.reasons), plugin)


def checked_pre_enqueue(answer: Any, plugin: str) -> Verdict | None:
    """What `gate` may return."""
    return None if answer is None else checked_verdict(answer, plugin, "pre_enqueue")


def checked_node_names(answer: Any, plugin: str) -> frozenset[str] | Verdict | None:
    """What `pins` may return."""
    if answer is None:
        return None
    return (
        checked_verdict(answer, plugin, "node_names")
        if isinstance(answer, Verdict)
        else _names(answer, plugin, "node_names")
    )


def checked_pre_filter(answer: Any, plugin: str) -> Skip | PreFilterResult | Verdict | None:
    """What `prepare` may return."""
    if answer is None or isinstance(answer, Skip):
        return answer
    if isinstance(answer, PreFilterResult):
        return PreFilterResult(_names(answer.names, plugin, "pre_filter"))
    if isinstance(answer, Verdict) and answer.code is Code.SKIP:
        return SKIP
    return checked_verdict(answer, plugin, "pre_filter")


def checked_assignment(answer: Any, plugin: str) -> Assignment | Verdict:
    """What `assign` may return."""
    if isinstance(answer, Verdict):
        found = checked_verdict(answer, plugin, "assign")
        if found is not None:
            return found
        raise_contract_error(plugin, "assign", answer, "an Assignment")
    if not isinstance(answer, Assignment):
        raise_contract_error(plugin, "assign", answer, "an Assignment")
    takes = all(
        isinstance(each, DeviceShare) and _whole(each.slot, each.share, each.vram)
        for each in _tuple(answer.device_shares)
    )
    picks = all(
        isinstance(each, VolumeChoice) and _whole(each.position) and isinstance(each.volume, str)
        for each in _tuple(answer.volumes)
    )
    notes = all(isinstance(each, tuple) and len(each) == 2 and _texts(each) for each in _tuple(answer.annotations))
    if not (takes and picks and notes):
        wanted = "an Assignment of tuples of DeviceShare, VolumeChoice and pairs of texts"
        raise_contract_error(plugin, "assign", answer, wanted)
    return answer


def checked_signature(answer: Any, plugin: str) -> Any:
    """What `sign` may return: whatever can be written as JSON, since it becomes part of a signature."""
    try:
        _PLAIN(answer)
    except Exception:
        raise_contract_error(plugin, "sign", answer, "plain data")
    return answer


def checked_amounts(answer: Any, plugin: str) -> Mapping[str, int]:
    """What `amounts` may return."""
    plain = isinstance(answer, Mapping) and _texts(tuple(answer))
    if not plain or not all(isinstance(each, int) and each >= 0 for each in answer.values()):
        raise_contract_error(plugin, "amounts", answer, "an amount for each resource by name")
    found: Mapping[str, int] = answer
    return found


def checked_sort_key(answer: Any, plugin: str) -> tuple[float, ...]:
    """What `order` may return: numbers that can be compared with each other."""
    if not isinstance(answer, tuple) or not all(isinstance(each, (int, float)) and each == each for each in answer):  # noqa: PLR0124 - NaN
        raise_contract_error(plugin, "sort_key", answer, "a tuple of numbers")
    return answer


def raise_contract_error(plugin: str, point: str, answer: Any, wanted: str) -> NoReturn:
    """Raise: the answer is not what the contract wants."""
    raise PluginError(plugin, f"`{point}` returned {describe_result(answer)}, not {wanted}")


def describe_result(answer: Any) -> str:
    """An answer as part of a message; one that cannot even be shown is named by its type."""
    try:
        text = repr(answer)
    except Exception:
        text = f"something of type {type(answer).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _names(answer: Any, plugin: str, point: str) -> frozenset[str]:
    if not isinstance(answer, (set, frozenset)) or not _texts(tuple(answer)):
        raise_contract_error(plugin, point, answer, "a set of node names")
    return frozenset(answer)


def _texts(answer: Any) -> bool:
    return isinstance(answer, (tuple, list)) and all(isinstance(each, str) for each in answer)


def _whole(*numbers: Any) -> bool:
    return all(isinstance(each, int) and abs(each) < 2**62 for each in numbers)


def _tuple(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (None,)
