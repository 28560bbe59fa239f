"""Functions from text: parsed, counted, never evaluated by Python."""
