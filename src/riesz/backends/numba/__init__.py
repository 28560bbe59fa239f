"""Generated loop nests, compiled by Numba."""
