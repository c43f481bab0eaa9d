"""What tests apply, as YAML."""


def a_deployment(replicas: int, pod: str, name: str = "web") -> str:
    """`pod` is the spec of its pods, in one line."""
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{{pod}}}
"""
