"""PyTorch's operations in NumPy code."""
