"""What notebooks, the command and the page show: small objects with a rendering for each use."""
