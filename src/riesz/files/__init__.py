"""What is computed, in files: `rz.save`, `rz.load`."""
