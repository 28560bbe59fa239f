"""The theorems: interpretation, affine interpretation, adjoints, dual numbers."""
