"""Simplification of terms by laws that are data."""
