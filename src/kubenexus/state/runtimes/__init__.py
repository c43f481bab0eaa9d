"""How long pods run: what is learned from earlier runs, and when the pods on nodes are expected to end."""
