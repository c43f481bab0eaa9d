"""The devices of all nodes: columns, sets of devices as bits, and the objects that they are read from."""
