"""Laws of closed forms."""
