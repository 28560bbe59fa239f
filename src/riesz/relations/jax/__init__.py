"""Relational reduction in JAX, on the processor and the GPU."""
