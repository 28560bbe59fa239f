"""Programs written in plain NumPy, which riesz differentiates as they are. Each file runs by itself; `python examples/programs` runs them all."""
