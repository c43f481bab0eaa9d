"""How long pods run: what earlier runs tell, and when the pods on nodes are expected to end."""
