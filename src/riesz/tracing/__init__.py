"""From NumPy code to programs: traced arrays, the trace they write, and the rules that answer for NumPy's functions."""
