"""Loops on small states as one function of numbers: statements, and what they become."""
