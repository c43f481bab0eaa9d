"""Reports of decisions to users: pod events and conditions, PodGroup conditions, metrics."""
