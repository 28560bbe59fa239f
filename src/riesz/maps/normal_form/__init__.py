"""The normal form of a linear map: entries between arrays, a network of them, and what can be read off it."""
