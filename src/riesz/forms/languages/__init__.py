"""The languages that closed forms are written in."""
