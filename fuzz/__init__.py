"""A machine that looks for wrong numbers: random NumPy programs, checked against NumPy, JAX and central differences (docs/reliability.md)."""
