"""Relational reduction on the processor: pairs grouped by target, strips for threads, compiled loops."""
