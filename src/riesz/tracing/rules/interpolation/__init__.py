"""Rules for more of scipy.interpolate: splines of FITPACK, data at scattered points."""
