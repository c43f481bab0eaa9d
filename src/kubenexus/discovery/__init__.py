"""Node discovery: reads the machine it runs on, and writes what it finds on its own Node and NodeResourceTopology."""
