"""The interpreter of terms, over any value domain."""
