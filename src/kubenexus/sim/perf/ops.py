"""The operations of a workload as data, with the fields and defaults of scheduler_perf. Unknown fields are errors."""

from typing import Any, TypeAlias

import msgspec


class Op(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The base of operations. `opcode` selects the type."""

    opcode: str = ""


class CountedOp(Op, frozen=True, kw_only=True):
    """An operation with a count: a number, or the name of a parameter (`$initNodes`)."""

    count: int | None = None
    count_param: str = ""


class LabelNodes(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Assigns the values to nodes in rotation."""

    label_key: str
    label_values: list[str]


class UniqueLabel(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    label_key: str


class Attachable(msgspec.Struct, frozen=True):
    count: int | None = None


class NodeAllocatable(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Additional resources of nodes and their CSINodes."""

    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, Attachable] = {}
    migrated_plugins: list[str] = []


class CreateNodes(CountedOp, frozen=True, kw_only=True):
    node_template_path: str = ""
    node_allocatable_strategy: NodeAllocatable | None = None
    label_node_prepare_strategy: LabelNodes | None = None
    unique_node_label_strategy: UniqueLabel | None = None
    template_params: dict[str, Any] = {}


class CreateNamespaces(CountedOp, frozen=True, kw_only=True):
    prefix: str = ""
    namespace_template_path: str = ""


class CreatePods(CountedOp, frozen=True, kw_only=True):
    """`skip_wait_to_completion`: the operation does not wait for the pods; a later barrier may."""

    count_multiplier_param: str = ""
    steady_state: bool = False
    steady_state_param: str = ""
    duration: str = "0s"
    duration_param: str = ""
    collect_metrics: bool = False
    namespace: str = ""
    pod_template_path: str = ""
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str = ""
    persistent_volume_claim_template_path: str = ""
    template_params: dict[str, Any] = {}
    signature_batch_size: int = 0
    signature_batch_size_param: str = ""


class CreatePodSets(CountedOp, frozen=True, kw_only=True):
    """Creates the same pods in several namespaces, in sequence."""

    create_pods_op: CreatePods
    namespace_prefix: str = ""


class CreatePodGroups(CountedOp, frozen=True, kw_only=True):
    namespace: str
    template_path: str
    template_params: dict[str, Any] = {}


class CreateAny(CountedOp, frozen=True, kw_only=True):
    template_path: str
    namespace: str = ""
    template_params: dict[str, Any] = {}


class UpdateAny(CountedOp, frozen=True, kw_only=True):
    template_path: str
    namespace: str = ""
    update_per_second: int = 0
    subresources: list[str] = []


class DeletePods(Op, frozen=True, kw_only=True):
    namespace: str
    label_selector: dict[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0


class Churn(Op, frozen=True, kw_only=True):
    """Creates objects (`create`), or creates and deletes them (`recreate`), in the background until the end."""

    mode: str
    template_paths: list[str]
    number: int = 0
    interval_milliseconds: int = 0
    namespace: str = ""


class Barrier(Op, frozen=True, kw_only=True):
    """Waits until the pods so far have nodes (`Scheduled`) or have been tried (`Attempted`)."""

    namespaces: list[str] = []
    label_selector: dict[str, str] = {}
    stage_requirement: str = "Scheduled"


class Sleep(Op, frozen=True, kw_only=True):
    duration: str = "0s"
    duration_param: str = ""


class AllocResourceClaims(Op, frozen=True, kw_only=True):
    namespace: str = ""


class Measure(Op, frozen=True, kw_only=True):
    """Starts or ends a measurement of kube-scheduler. Ignored here: time is virtual."""

    name: str = ""
    namespaces: list[str] = []
    label_selector: dict[str, str] = {}
    type: str = ""
    file_path: str = ""


AnyOp: TypeAlias = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | CreatePodGroups
    | CreateAny
    | UpdateAny
    | DeletePods
    | Churn
    | Barrier
    | Sleep
    | AllocResourceClaims
    | Measure
)

OPCODES: dict[str, type[AnyOp]] = {
    "allocResourceClaims": AllocResourceClaims,
    "barrier": Barrier,
    "churn": Churn,
    "createAny": CreateAny,
    "createNamespaces": CreateNamespaces,
    "createNodes": CreateNodes,
    "createPodGroups": CreatePodGroups,
    "createPodSets": CreatePodSets,
    "createPods": CreatePods,
    "deletePods": DeletePods,
    "sleep": Sleep,
    "startCollectingMetrics": Measure,
    "startCollectingProfile": Measure,
    "stopCollectingMetrics": Measure,
    "stopCollectingProfile": Measure,
    "updateAny": UpdateAny,
}
