"""Functions defined by equations and integrals: solved with numbers, differentiated in traces."""
