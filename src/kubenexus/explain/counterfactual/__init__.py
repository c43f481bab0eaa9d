"""What would make a refused job start at once, each answer verified by a decision on a changed cluster."""
