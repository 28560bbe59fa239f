"""Rules for scipy.sparse."""
