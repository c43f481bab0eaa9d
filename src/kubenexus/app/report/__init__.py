"""What users see of decisions: pod events and conditions, PodGroup conditions, metrics."""
