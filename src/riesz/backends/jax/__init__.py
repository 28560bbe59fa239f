"""Generated code for JAX, and compiled functions inside JAX."""
