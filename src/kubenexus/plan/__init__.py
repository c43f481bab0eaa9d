"""Whole jobs: `decide`. No I/O."""
