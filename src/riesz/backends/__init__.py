"""Programs as Python source that runs them: numbers one by one, or arrays."""
