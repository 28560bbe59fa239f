"""Programs along one long axis: components at each position, slices, tiles."""
