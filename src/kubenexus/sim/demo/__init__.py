"""`kubenexus demo`: a cluster in the box, the real scheduler over HTTP, and a story that has to come true."""
