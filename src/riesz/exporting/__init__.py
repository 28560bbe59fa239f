"""Code that runs alone, from compiled functions."""
