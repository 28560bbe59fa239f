"""Traces of functions as they are kept: arguments, records, comparison with plain Python, functions known again."""
