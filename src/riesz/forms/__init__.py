"""Closed forms: derivatives as a textbook writes them."""
