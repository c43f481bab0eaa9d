"""Asks an autoscaler for the nodes of gangs that do not fit."""
