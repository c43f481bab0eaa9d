"""What is free on the NUMA nodes of every row."""
