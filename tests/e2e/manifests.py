"""What tests apply, as YAML. `pod` is the spec of a pod, in one line; `more` are further fields of the object's own."""


def a_deployment(replicas: int, pod: str, name: str = "web") -> str:
    return _an_app("Deployment", name, pod, f"replicas: {replicas}")


def a_stateful_set(replicas: int, pod: str, name: str = "db", more: str = "") -> str:
    return _an_app("StatefulSet", name, pod, _fields(f"replicas: {replicas}", f"serviceName: {name}", more))


def a_daemon_set(pod: str, name: str = "probe") -> str:
    return _an_app("DaemonSet", name, pod)


def a_job(name: str, container: str, more: str = "", **annotations: str) -> str:
    """Pods of this one container that are not started again. The annotations are those that agents read:
    `run_seconds="1"`."""
    read = ", ".join(f'sim.kubenexus.io/{key.replace("_", "-")}: "{value}"' for key, value in annotations.items())
    template = f"metadata: {{annotations: {{{read}}}}}, spec: {{restartPolicy: Never, containers: [{{{container}}}]}}"
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec: {{{_fields(more, f"template: {{{template}}}")}}}
"""


def all_of(*manifests: str) -> str:
    return "---".join(manifests)


def _an_app(kind: str, name: str, pod: str, more: str = "") -> str:
    selector = f"selector: {{matchLabels: {{app: {name}}}}}"
    return f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
  {{{_fields(more, selector)}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{{pod}}}}}}}
"""


def _fields(*fields: str) -> str:
    return ", ".join(filter(None, fields))
