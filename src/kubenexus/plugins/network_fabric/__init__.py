"""NetworkFabricScore: the fabric of a node, and how close it is to the job's other members."""
