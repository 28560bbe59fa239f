"""How things look: Unicode and LaTeX from one printer, programs with their lets, derivations rule by rule."""
