"""Generated code on Python floats."""
