"""Functions of other libraries as functions of riesz, and back."""
