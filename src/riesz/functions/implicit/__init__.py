"""Functions defined by equations, integrals and differential equations: solved with numbers, differentiated by theorems."""
