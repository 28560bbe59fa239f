"""Generated code on NumPy arrays."""
