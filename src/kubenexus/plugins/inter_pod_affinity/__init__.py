"""InterPodAffinity."""
