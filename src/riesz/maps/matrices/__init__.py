"""Matrices of linear maps: positions once, numbers at each point."""
