"""Compiled functions on many devices: which device has which part of each value, and what travels between them."""
