"""Counterparts of what SciPy has beyond functions of numbers: distributions, distances, splines, filters."""
