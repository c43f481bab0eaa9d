"""What a pod is: its kind of work, from what the pod says and from what its operator writes on it."""
