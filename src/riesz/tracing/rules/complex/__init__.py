"""Complex arrays: a real and an imaginary part, both traced."""
