"""The flat form of a function: steps on slots, wiring, and the operations steps are made of."""
