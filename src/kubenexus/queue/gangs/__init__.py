"""Pods of gangs become jobs."""
