"""The toolbox: knows nothing of Kubernetes."""
