"""The command `riesz`, and the page that `riesz play` shows."""
