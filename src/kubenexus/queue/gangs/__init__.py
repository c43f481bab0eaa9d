"""Turns the pods of gangs into jobs."""
