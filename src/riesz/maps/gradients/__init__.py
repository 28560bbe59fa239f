"""Gradients that are not multiplied out."""
