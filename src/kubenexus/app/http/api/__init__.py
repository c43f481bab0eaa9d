"""The live API: what waits and why, computed in copies of the process, and decisions as they happen."""
