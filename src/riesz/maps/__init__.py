"""Linear maps as users hold them."""
