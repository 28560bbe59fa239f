"""Passes: a program in, a program out that computes the same with less work."""
