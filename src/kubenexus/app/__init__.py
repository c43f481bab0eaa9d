"""The wiring: the loop, leader election, what the process serves over HTTP. Holds no rules."""
