"""From what people write to programs: plain NumPy code, traced; text expressions; control flow."""
