"""Functions in combinatory form: typed terms, and the open combinators they come from."""
