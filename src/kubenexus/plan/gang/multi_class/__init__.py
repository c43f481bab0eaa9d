"""Packing of gangs whose members are of several classes."""
