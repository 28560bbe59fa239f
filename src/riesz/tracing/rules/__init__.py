"""One rule for each function of NumPy and SciPy."""
