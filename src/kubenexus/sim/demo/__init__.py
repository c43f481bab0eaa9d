"""`kubenexus demo`: an embedded cluster, the real scheduler over HTTP, and a sequence of steps with checked
outcomes."""
