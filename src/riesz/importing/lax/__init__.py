"""What JAX's primitives are in NumPy code on traced arrays."""
