"""Combinators by their public names."""
