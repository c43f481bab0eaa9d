"""Every key for identity, tenants and kinds of work that the founding documents name is read, where they put it."""

from typing import Any

import pytest

from kubenexus.api.classification.workload import classify
from kubenexus.api.keys import tenant, workload
from kubenexus.api.keys.entry import KeyEntry
from kubenexus.api.keys.reading import read_key
from kubenexus.testing.builders import a_pod

LABEL, ANNOTATION = "label", "annotation"

# The key, where it is, its text, the entry that reads it, and the value.
READ: tuple[tuple[str, str, str, KeyEntry[Any], Any], ...] = (
    ("tenant.kubenexus.io/tier", LABEL, "Gold", tenant.TIER, "gold"),
    ("scheduling.kubenexus.io/tier", LABEL, "silver", tenant.TIER, "silver"),
    ("scheduling.kubenexus.io/tier", ANNOTATION, "silver", tenant.TIER, "silver"),
    ("tenant.kubenexus.io/tier", ANNOTATION, "bronze", tenant.POD_TIER, "bronze"),
    ("tenant.kubenexus.io/tier", LABEL, "bronze", tenant.POD_TIER, "bronze"),
    ("scheduling.kubenexus.io/priority-tier", ANNOTATION, "high-priority", tenant.POD_TIER, "gold"),
    ("scheduling.kubenexus.io/priority-tier", ANNOTATION, "medium-priority", tenant.POD_TIER, "silver"),
    ("scheduling.kubenexus.io/priority-tier", ANNOTATION, "low-priority", tenant.POD_TIER, "bronze"),
    ("tenant.kubenexus.io/name", LABEL, "research", tenant.NAME, "research"),
    ("tenant.kubenexus.io/name", ANNOTATION, "research", tenant.NAME, "research"),
    ("tenant.kubenexus.io/reserved-tier", LABEL, "gold", tenant.RESERVED_TIER, "gold"),
    ("kueue.x-k8s.io/queue-name", LABEL, "research", tenant.QUEUE, "research"),
    ("workload.kubenexus.io/preemptible", LABEL, "true", tenant.PREEMPTIBLE, True),
    ("scheduling.kubenexus.io/backfill", LABEL, "true", tenant.PREEMPTIBLE, True),
    ("backfill.scheduling.kubenexus.io/eligible", LABEL, "true", tenant.PREEMPTIBLE, True),
    ("scheduling.kubenexus.io/backfill", LABEL, "true", tenant.BACKFILL, True),
    ("backfill.scheduling.kubenexus.io/eligible", LABEL, "true", tenant.BACKFILL, True),
    ("scheduling.kubenexus.io/app-id", LABEL, "etl-33", workload.APP_ID, "etl-33"),
    ("spark-app-id", LABEL, "spark-1", workload.SPARK_APP_ID, "spark-1"),
    ("spark-app-selector", LABEL, "spark-1", workload.SPARK_APP_SELECTOR, "spark-1"),
    ("spark-role", LABEL, "driver", workload.SPARK_ROLE, "driver"),
    ("kubenexus.io/driver-cpu", ANNOTATION, "500m", workload.DRIVER_CPU, 500),
    ("kubenexus.io/driver-memory", ANNOTATION, "2Gi", workload.DRIVER_MEMORY, 2 << 30),
    ("kubenexus.io/executor-cpu", ANNOTATION, "4", workload.EXECUTOR_CPU, 4000),
    ("kubenexus.io/executor-memory", ANNOTATION, "16Gi", workload.EXECUTOR_MEMORY, 16 << 30),
    ("kubenexus.io/executor-count", ANNOTATION, "8", workload.EXECUTOR_COUNT, 8),
    ("kubenexus.io/dynamic-allocation-enabled", ANNOTATION, "true", workload.DYNAMIC_ALLOCATION, True),
    ("kubenexus.io/min-executors", ANNOTATION, "2", workload.MIN_EXECUTORS, 2),
    ("kubenexus.io/max-executors", ANNOTATION, "32", workload.MAX_EXECUTORS, 32),
    ("topology.kubenexus.io/spread-zones", ANNOTATION, "true", tenant.SPREAD_ZONES, True),
    ("topology.kubenexus.io/min-zones", ANNOTATION, "3", tenant.MIN_ZONES, 3),
    ("topology.kubenexus.io/affinity", ANNOTATION, "same-rack", tenant.RACK_AFFINITY, "same-rack"),
)

# The key, where it is, its text, and the kind of work that it shows.
CLASSIFIED = (
    ("workload.kubenexus.io/type", LABEL, "Training", "training"),
    ("workload.kubenexus.io/type", ANNOTATION, "Training", "training"),
    ("spark-app-id", LABEL, "x", "batch"),
    ("spark-role", LABEL, "driver", "batch"),
    ("spark-app-selector", LABEL, "x", "batch"),
    ("tf-replica-type", LABEL, "worker", "batch"),
    ("pytorch-replica-type", LABEL, "worker", "batch"),
    ("pytorch-job-name", LABEL, "x", "batch"),
    ("mpi-job-role", LABEL, "worker", "batch"),
    ("ray.io/node-type", LABEL, "head", "batch"),
    ("kubeflow.org/component", LABEL, "x", "batch"),
    ("batch.kubernetes.io/job-name", LABEL, "x", "batch"),
    ("training.kubeflow.org/job-name", LABEL, "x", "training"),
    ("pytorch.org/job-name", LABEL, "x", "training"),
    ("tensorflow.org/job-name", LABEL, "x", "training"),
    ("serving.kubeflow.org/inferenceservice", LABEL, "x", "inference"),
    ("serving.kserve.io/inferenceservice", LABEL, "x", "inference"),
    ("seldon.io/deployment", LABEL, "x", "inference"),
    ("app.kubernetes.io/component", LABEL, "predictor", "inference"),
    ("app.jupyter.org/hub-version", LABEL, "4", "interactive"),
    ("app.rstudio.com/rstudio-server", LABEL, "x", "interactive"),
    ("app.kubernetes.io/name", LABEL, "jupyterhub", "interactive"),
)


@pytest.mark.parametrize(("key", "where", "text", "entry", "value"), READ)
def test_a_key_is_read(key: str, where: str, text: str, entry: KeyEntry[Any], value: object) -> None:
    labels, annotations = ({key: text}, {}) if where == LABEL else ({}, {key: text})
    assert read_key(entry, labels, annotations).value == value


@pytest.mark.parametrize(("key", "where", "text", "kind"), CLASSIFIED)
def test_a_key_shows_the_kind_of_work(key: str, where: str, text: str, kind: str) -> None:
    pod = a_pod(labels={key: text}) if where == LABEL else a_pod(annotations={key: text})
    assert classify(pod).type.value == kind
