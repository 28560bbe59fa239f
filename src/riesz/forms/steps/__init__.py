"""Derivations step by step, in matrix notation."""
