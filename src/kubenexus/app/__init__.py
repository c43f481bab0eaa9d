"""The scheduler process: scheduling loop, leader election, HTTP endpoints, and the wiring of all other packages."""
