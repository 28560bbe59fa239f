"""What NumPy code does along relations besides sums."""
