"""What a pod needs of devices, as a sentence says it: `4 free GPUs joined by NVLink`."""

from kubenexus.api.devices.device import DeviceKind
from kubenexus.api.devices.device_resources import find_resource
from kubenexus.base.errors import truncated
from kubenexus.plugins.devices.request import DeviceRequest


def need_text(requests: tuple[DeviceRequest, ...]) -> str:
    """Returns what a pod needs on one node; "" if it needs no devices."""
    return " and ".join(_text(request) for request in requests)


def is_only_a_number(request: DeviceRequest) -> bool:
    """Returns whether the request is a number of whole devices and nothing else: kube-scheduler's reasons say it."""
    conditions = (request.card_memory, request.words, request.joined, request.bandwidth)
    return not request.is_part and not any(conditions)


def device_noun(request: DeviceRequest) -> str:
    """Returns `GPU` or the name of the resource, for one device of a request."""
    resource = find_resource(request.resource)
    gpu = not request.resource or (resource is not None and resource.kind is DeviceKind.GPU)
    return "GPU" if gpu else truncated(request.resource)


def _text(request: DeviceRequest) -> str:
    noun, many = device_noun(request), request.number > 1
    plural = f"{noun}s" if many and noun == "GPU" else noun
    if request.is_part:
        text = f"{_part(request)} of {f'each of {request.number} shared {plural}' if many else f'a shared {noun}'}"
    else:
        text = f"{request.number} free {plural}"
    if request.words:
        text += f" of the type {truncated(' '.join(sorted(request.words)))}"
    if request.card_memory:
        text += f" with {memory_text(request.card_memory)} of memory{' each' if many else ''}"
    if request.joined:
        text += " joined by NVLink"
    if request.joined and request.bandwidth:
        text += f" with {request.bandwidth / 8e9:g} GB/s"
    return text


def _part(request: DeviceRequest) -> str:
    share = f"{request.share / 10:g}%" if request.share else ""
    return " and ".join(each for each in (share, memory_text(request.memory) if request.memory else "") if each)


def memory_text(amount: int) -> str:
    """Returns an amount of memory as users write it, to a tenth of a Gi: `80Gi`, `79.6Gi`, `512Mi`."""
    return f"{round(amount / (1 << 30), 1):g}Gi" if amount >= 1 << 30 else f"{amount >> 20}Mi"
